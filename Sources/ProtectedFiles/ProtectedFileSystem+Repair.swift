import Cryptography
import LinuxSystem
import ProtectionModel

/// What a repair mended.
public struct RepairReport: Sendable, Hashable {
    /// One thing that was not as it should be, and is now.
    public enum Mended: String, Sendable, Hashable, CaseIterable {
        /// The attribute was missing, malformed or weaker, and was written from the header's copy.
        case attribute
        /// The header's copy of the record, or one of its two slots, was written again.
        case header
        /// Writes that a crash interrupted were finished or taken back.
        case interruptedWrite = "interrupted-write"
    }

    /// Empty when nothing was to be done.
    public let mended: [Mended]
    /// The class of the file.
    public let protectionClass: ProtectionClass
}

extension ProtectedFileSystem {
    /// Makes the two copies of the key record and both header slots say the same again. Needs the file's key, so that
    /// only what authenticates is copied.
    ///
    /// Throws `locked`, or `damaged` when no copy is good: nothing is written then.
    public func repair(
        _ path: FilePath, in directory: Int32 = currentDirectory
    ) throws(ProtectionError) -> RepairReport {
        try ProtectionError.mapping(at: path) {
            let descriptor = try openRegular(path, in: directory, [.read, .write])
            let found = try ContainerOpening.find(descriptor.number, keys, system)
            var mended: [RepairReport.Mended] = []
            var attributeIsGood = false
            if case .good(let record) = try StoredRecord.attribute(of: descriptor.number, system) {
                attributeIsGood = record == found.record
            }
            if !attributeIsGood { mended.append(.attribute) }
            if try !slotsAgree(descriptor.number, found) { mended.append(.header) }
            // While somebody has the file open for writing, that is how it looks in the middle of things.
            let isBeingWritten = try ContainerLock.somebodyWrites(descriptor.number, system)
            let end = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: found.view.length))
            let size = try system.status(descriptor.number).size
            if !isBeingWritten,
                found.view.header.log != nil || found.view.header.syncedLength < found.view.length || size > end
            {
                mended.append(.interruptedWrite)
            }
            if !mended.isEmpty {
                let record = try found.recordToKeep(descriptor.number, keys, system)
                var file = try ContainerOpening.open(descriptor, canWrite: true, keys)
                try file.replaceRecord(record)
            }
            return RepairReport(mended: mended, protectionClass: found.record.protectionClass)
        }
    }

    /// Whether both slots authenticate and hold the record that counts.
    private func slotsAgree(_ descriptor: Int32, _ found: ContainerOpening.Found) throws -> Bool {
        let slots = try StoredRecord(descriptor, system).slots
        guard slots.count == ContainerGeometry.slotsSize else { return false }
        return try found.lease.withCipher { cipher in
            for slot in 0..<2 {
                let isGood = try slots.withUnsafeBytes { bytes in
                    let part = ContainerFile.slot(slot, of: bytes)
                    guard let header = try? ContainerHeader(decoding: part), header.record == found.record else {
                        return false
                    }
                    do {
                        try ContainerHeader.authenticate(part, &cipher)
                        return true
                    } catch CryptographyError.authenticationFailed {
                        return false
                    }
                }
                if !isGood { return false }
            }
            return true
        }
    }
}
