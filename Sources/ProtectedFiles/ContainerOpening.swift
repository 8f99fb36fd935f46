import Cryptography
import LinuxSystem
import ProtectionModel

/// Finds the record that counts, borrows its key and proves the header with it.
enum ContainerOpening {
    /// What was found, ready for a ``ContainerFile``.
    struct Found {
        let record: KeyRecord
        let place: RecordPlace
        let lease: any FileKeyLease
        let view: ContainerView

        /// The record; with the flag that says so when another copy wraps the same file key for a weaker class, because
        /// that copy may lie elsewhere as well.
        func recordToKeep(
            _ descriptor: Int32, _ service: any ClassKeyService, _ system: any SystemCalls
        ) throws -> KeyRecord {
            guard !record.flags.contains(.keyWasWeaker) else { return record }
            let stored = try StoredRecord(descriptor, system)
            for (other, _) in try stored.candidates()
            where record.protectionClass.isStronger(than: other.protectionClass) {
                guard let lease = try? service.unwrap(other),
                    (try? lease.withCipher { cipher in
                        try ContainerFile.authenticView(view.slots, &cipher)
                    }) != nil
                else { continue }
                return try service.rewrap(record, to: record.protectionClass, flags: record.flags.union(.keyWasWeaker))
            }
            return record
        }
    }

    /// Opens the key record of an open file.
    ///
    /// Of two good copies that differ, the one that counts more and opens this very container is taken. A locked one
    /// ends the search: a weaker copy is never tried because of the lock.
    static func find(
        _ descriptor: Int32, _ service: any ClassKeyService, _ system: any SystemCalls
    ) throws -> Found {
        let stored = try StoredRecord(descriptor, system)
        var failure: ProtectionError?
        for candidate in try stored.candidates() {
            let lease: any FileKeyLease
            do throws(ProtectionError) {
                lease = try service.unwrap(candidate.record)
            } catch {
                switch error.code {
                case .damaged(.unwrap), .foreignKeybag:
                    failure = failure ?? error
                    continue
                default:
                    throw error
                }
            }
            do {
                let view = try lease.withCipher { cipher in
                    try ContainerFile.authenticView(Self.padded(stored.slots), &cipher)
                }
                return Found(record: candidate.record, place: candidate.place, lease: lease, view: view)
            } catch let unsettled as ContainerFile.Unsettled {
                failure = failure ?? unsettled.reason
            }
        }
        throw failure ?? ProtectionError(.damaged(.header), "no key record opens the container")
    }

    private static func padded(_ slots: [UInt8]) -> [UInt8] {
        slots + [UInt8](repeating: 0, count: ContainerGeometry.slotsSize - slots.count)
    }

    /// Opens a container by descriptor, and settles what a crash left.
    static func open(
        _ descriptor: consuming Descriptor, canWrite: Bool, _ service: any ClassKeyService
    ) throws -> ContainerFile {
        let system = descriptor.system
        let number = descriptor.number
        let found = try settled(number, system) { try find(number, service, system) }
        var file = ContainerFile(
            descriptor, service: service, canWrite: canWrite, record: found.view.header.record, lease: found.lease,
            recordPlace: found.place, view: found.view)
        if canWrite {
            // Asked, announced and settled under one lock: a second writer waits, rather than to write to what the first
            // one has yet to settle.
            try file.writing { file, cipher in
                let isAlone = try !ContainerLock.somebodyWrites(number, system)
                try ContainerLock.announceWriter(number, system)
                let end = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: file.view.length))
                guard isAlone else { return }
                if try file.view.header.log != nil || file.view.header.syncedLength < file.view.length
                    || system.status(number).size > end
                {
                    try file.recover(&cipher)
                }
            }
        } else if try !ContainerLock.somebodyWrites(number, system) {
            // Nobody alive has unsynced content here, so what does not authenticate behind the synced length was lost in
            // a crash.
            file.clippedLength = try file.reading { file, cipher in
                guard file.view.header.syncedLength < file.view.length else { return nil }
                let whole = try file.lengthOfWholeChunks(&cipher)
                return whole < file.view.length ? whole : nil
            }
        }
        return file
    }

    /// Tries once without a lock, and once more under the shared lock when somebody may be in the middle of a change.
    private static func settled<Result>(
        _ descriptor: Int32, _ system: any SystemCalls, _ body: () throws -> Result
    ) throws -> Result {
        do {
            return try body()
        } catch let error as ProtectionError {
            guard case .damaged = error.code,
                (try? system.lock(descriptor, .shared, start: ContainerLock.changeByte, count: 1, wait: true)) == true
            else { throw error }
            let outcome = Swift.Result { try body() }
            _ = try system.lock(descriptor, .none, start: ContainerLock.changeByte, count: 1, wait: false)
            return try outcome.get()
        }
    }
}
