import LinuxSystem
import ProtectionModel
import Synchronization

/// Class keys for a batch of files that are converted together: fetches many file keys in one call where the service is far
/// away, and hands them out one by one. Everything else goes through. Thread-safe.
final class BatchedKeys: ForwardingClassKeys {
    /// Keys in one call at most.
    static let batchSize = 64

    private struct State {
        /// New keys that were fetched and not used.
        var new: [ProtectionClass: [NewFileKey]] = [:]
        /// Files that are still to be made, so that no more are fetched than are needed.
        var expected = 1
        /// Loans of records that were opened ahead, each for one use.
        var opened: [KeyRecord: any FileKeyLease] = [:]
    }

    let base: any ClassKeyService
    private let state = Mutex(State())

    init(_ base: any ClassKeyService) { self.base = base }

    /// Gets ready for a batch: new keys are fetched when the first is needed, records are opened now.
    func prepare(_ conversion: Conversion, _ files: [ConversionBatch.File], _ system: any SystemCalls) {
        guard prefersBatches else { return }
        switch conversion {
        case .protect: state.withLock { $0.expected = files.count }
        case .unprotect: openAhead(files, system)
        case .rekey:
            state.withLock { $0.expected = files.count }
            openAhead(files, system)
        }
    }

    func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        guard prefersBatches, flags.isEmpty else {
            return try base.makeFileKey(for: protectionClass, flags: flags)
        }
        return try state.withLock { (state) throws(ProtectionError) -> NewFileKey in
            let expected = state.expected
            state.expected = max(1, expected - 1)
            while let key = state.new[protectionClass]?.popLast() {
                if Self.isGood(key.lease) { return key }
                // A lock came since they were fetched, and took all of them.
                state.new[protectionClass] = []
            }
            var keys = try base.makeFileKeys(
                for: protectionClass, flags: [], count: min(Self.batchSize, expected))
            guard let key = keys.popLast() else {
                throw ProtectionError(.agentNotReachable, "no file key came")
            }
            state.new[protectionClass] = keys
            return key
        }
    }

    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        if let lease = state.withLock({ $0.opened.removeValue(forKey: record) }), Self.isGood(lease) { return lease }
        return try base.unwrap(record)
    }

    private static func isGood(_ lease: any FileKeyLease) -> Bool { (try? lease.check()) != nil }

    /// What cannot be read or opened now is met again, with its reason, when the file's turn comes.
    private func openAhead(_ files: [ConversionBatch.File], _ system: any SystemCalls) {
        var records: [KeyRecord] = []
        for file in files {
            guard
                let bytes = try? system.attribute(
                    KeyRecord.attributeName, of: file.name, in: file.directory.number),
                let record = try? KeyRecord(decoding: bytes), record.keybag == keybagIdentifier, !record.isDirectory
            else { continue }
            records.append(record)
        }
        guard !records.isEmpty else { return }
        let results = base.unwrap(records)
        state.withLock { state in
            for (record, result) in zip(records, results) {
                if case .success(let lease) = result { state.opened[record] = lease }
            }
        }
    }
}
