import Cryptography
import LinuxSystem
import ProtectionModel

/// An open container: the state behind a handle. Not thread-safe; ``ProtectedFile`` puts it behind a lock.
///
/// Readers take no lock. What they read may be in the middle of a change by another process; then it does not
/// authenticate, and they read again under the shared lock before they call it damaged. Writers hold the exclusive lock
/// for the whole of an operation (`docs/formats/container.md`, section "Several processes").
struct ContainerFile: ~Copyable {
    let descriptor: Descriptor
    let service: any ClassKeyService
    let canWrite: Bool
    /// Which copy of the key record counted at open.
    let recordPlace: RecordPlace
    /// The record under which the key was lent.
    var record: KeyRecord
    var lease: any FileKeyLease
    var view: ContainerView
    /// True when this handle has written since the last time that everything was durable.
    var hasUnsynced = false
    /// True once this handle has written anything.
    var hasWritten = false
    /// Bytes written directly to new places since the last sync.
    var unsyncedBytes: UInt64 = 0
    /// Chunks from here on were not written directly by this handle. Of a write that failed, more may be in their places
    /// than any length covers.
    var placedChunks: UInt64 = 0
    /// Why what this handle wrote may never reach the disk: the kernel tells of a failed sync once, forgets the bytes, and
    /// calls the next sync a success. So there is no next one through this handle.
    var syncFailure: SystemError?
    /// True while this handle holds the lock on changes, shared or exclusive.
    var holdsLock = false
    /// Bytes of content that count for a handle that may not write, when a crash left a tail that is not whole.
    var clippedLength: UInt64?

    var system: any SystemCalls { descriptor.system }

    /// Chunks below this number are written through the log only. Each of the others is written directly once, until
    /// what lies behind the content has been cut off: else a crash could bring back what was written there before.
    var firstFreeChunk: UInt64 { max(view.firstFreeChunk, placedChunks) }

    /// A key record other than the one under which the key was lent counts now.
    struct RecordChanged: Error { let record: KeyRecord }
    /// Something does not authenticate: damage, or a change by somebody else that is under way.
    struct Unsettled: Error { let reason: ProtectionError }

    init(
        _ descriptor: consuming Descriptor, service: any ClassKeyService, canWrite: Bool, record: KeyRecord,
        lease: any FileKeyLease, recordPlace: RecordPlace, view: ContainerView
    ) {
        self.descriptor = descriptor
        self.service = service
        self.canWrite = canWrite
        self.record = record
        self.lease = lease
        self.recordPlace = recordPlace
        self.view = view
    }

    /// Runs an operation with the file key: once more when the class was changed under way, and once more under the
    /// shared lock when something did not authenticate.
    mutating func reading<Result>(
        _ body: (inout ContainerFile, inout ChunkCipher) throws -> Result
    ) throws -> Result {
        do {
            for _ in 0..<8 {
                let result = try withCipher { file, cipher in
                    try file.refresh(&cipher)
                    let result = try body(&file, &cipher)
                    // A log that was applied and cut between the look at the header and the look at the log would make
                    // the content look as it was before: then the header is no longer the one that was read.
                    return try file.view.header.log == nil || file.headerIsUnchanged() ? result : nil
                }
                if let result { return result }
            }
            throw Unsettled(reason: ProtectionError(.busy, "the container keeps changing"))
        } catch is Unsettled {
            return try ContainerLock.shared.holding(descriptor.number, system, file: &self) { file in
                do {
                    return try file.withCipher { file, cipher in
                        file.view.slots = []
                        try file.refresh(&cipher)
                        return try body(&file, &cipher)
                    }
                } catch let unsettled as Unsettled {
                    throw unsettled.reason
                }
            }
        }
    }

    /// Runs an operation that changes the container, under the exclusive lock.
    mutating func writing<Result>(
        _ body: (inout ContainerFile, inout ChunkCipher) throws -> Result
    ) throws -> Result {
        if let syncFailure { throw syncFailure }
        return try ContainerLock.exclusive.holding(descriptor.number, system, file: &self) { file in
            do {
                return try file.withCipher { file, cipher in
                    try file.refresh(&cipher)
                    if let log = file.view.header.log, log.sealedEntries > 0 {
                        // A writer that died or failed while it applied its log: its work is finished first. The log may
                        // have been cut off since this handle read it.
                        file.view.slots = []
                        try file.refresh(&cipher)
                        try file.applyLog(&cipher)
                    }
                    return try body(&file, &cipher)
                }
            } catch let unsettled as Unsettled {
                throw unsettled.reason
            }
        }
    }

    /// Lends the key to `body` in the form of a cipher that is gone when it returns. A lock that comes after `body` began is
    /// an error like any other: `body` is not run again.
    private mutating func withCipher<Result>(
        _ body: (inout ContainerFile, inout ChunkCipher) throws -> Result
    ) throws -> Result {
        for _ in 0..<3 {
            var hasBegun = false
            do {
                let lease = self.lease
                return try lease.withCipher { cipher in
                    hasBegun = true
                    return try body(&self, &cipher)
                }
            } catch let change as RecordChanged {
                try adopt(change.record)
            } catch let error as ProtectionError {
                // A loan of class B ends too, with the agent that gave it.
                guard !hasBegun, case .locked = error.code,
                    [.complete, .completeUnlessOpen].contains(lease.protectionClass)
                else { throw error }
                try renewLoan()
            }
        }
        throw ProtectionError(.busy, "the file's class keeps changing")
    }

    /// After a lock took the key back: a trial of its own, which succeeds once the keys are there again, or when the file
    /// has left class A meanwhile. Apple's handles go on after the next unlock too.
    private mutating func renewLoan() throws {
        do {
            let found = try ContainerOpening.find(descriptor.number, service, system)
            lease = found.lease
            record = found.view.header.record
            view.slots = []
        } catch let error as ProtectionError {
            if case .damaged = error.code { throw Unsettled(reason: error) }
            throw error
        }
    }

    /// Follows a change of class made through another handle. A handle of a class whose key outlives the lock keeps its
    /// loan; one that has become class A gives it up, even when it gets no new one, so that the lock rule holds for it too.
    private mutating func adopt(_ record: KeyRecord) throws(ProtectionError) {
        do {
            lease = try service.unwrap(record)
        } catch {
            if record.protectionClass == .complete {
                lease = EndedFileKeyLease()
                throw error
            }
            guard case .locked = error.code else { throw error }
        }
        self.record = record
    }

    // MARK: - The header and the log

    /// Reads the header slots again, and what was added to the log.
    mutating func refresh(_ cipher: inout ChunkCipher) throws {
        let changed: [UInt8]? = try withUnsafeTemporaryAllocation(
            byteCount: ContainerGeometry.slotsSize, alignment: 16
        ) { slots in
            let count = try system.readFully(descriptor.number, into: slots, at: 0)
            guard count == ContainerGeometry.slotsSize else {
                throw Unsettled(
                    reason: ProtectionError(.damaged(.header), "the container is cut short inside its header"))
            }
            return UnsafeRawBufferPointer(slots).areEqual(to: view.slots) ? nil : Array(slots)
        }
        if let changed {
            let found = try Self.newestView(changed, &cipher)
            // The newer slot may have been read in the middle of its being written, when the other is too old.
            guard found.isNewest || holdsLock else {
                throw Unsettled(reason: ProtectionError(.damaged(.header), "a header does not authenticate"))
            }
            view = found.view
            clippedLength = nil
            if view.header.record != record {
                let changed = view.header.record
                view.slots = []
                throw RecordChanged(record: changed)
            }
        }
        if view.header.log != nil { try readLog(&cipher) }
    }

    /// `fdatasync`. After a failure this handle only reads, and the next one to open the file for writing brings its
    /// writes to the disk anew.
    mutating func synchronizeData() throws(SystemError) {
        if let syncFailure { throw syncFailure }
        do throws(SystemError) {
            try system.synchronize(descriptor.number, dataOnly: true)
        } catch {
            syncFailure = error
            _ = try? system.lock(
                descriptor.number, .none, start: ContainerLock.presenceByte, count: 1, wait: false)
            throw error
        }
    }

    private func headerIsUnchanged() throws -> Bool {
        try withUnsafeTemporaryAllocation(byteCount: ContainerGeometry.slotsSize, alignment: 16) { slots in
            let count = try system.readFully(descriptor.number, into: slots, at: 0)
            return count == slots.count && UnsafeRawBufferPointer(slots).areEqual(to: view.slots)
        }
    }

    /// The newest slot that a holder of this key wrote. Throws ``Unsettled`` when there is none.
    static func authenticView(_ slots: [UInt8], _ cipher: inout ChunkCipher) throws -> ContainerView {
        try newestView(slots, &cipher).view
    }

    /// The same, and whether that slot is the one that claims the higher counter, of two that decode.
    private static func newestView(
        _ slots: [UInt8], _ cipher: inout ChunkCipher
    ) throws -> (view: ContainerView, isNewest: Bool) {
        var candidates: [(slot: Int, header: ContainerHeader)] = []
        var reason = ProtectionError(.damaged(.header), "neither header of the container authenticates")
        for slot in 0..<2 {
            let decoded = slots.withUnsafeBytes { bytes in
                Swift.Result { () throws(ProtectionError) in
                    try ContainerHeader(decoding: Self.slot(slot, of: bytes))
                }
            }
            switch decoded {
            case .success(let header): candidates.append((slot, header))
            case .failure(let error) where error.code == .needsNewerVersion: reason = error
            case .failure: break
            }
        }
        if reason.code == .needsNewerVersion { throw reason }
        candidates.sort { $0.header.counter > $1.header.counter }
        for (index, candidate) in candidates.enumerated() {
            do {
                try slots.withUnsafeBytes { bytes in
                    try ContainerHeader.authenticate(Self.slot(candidate.slot, of: bytes), &cipher)
                }
                let view = ContainerView(slots: slots, currentSlot: candidate.slot, header: candidate.header)
                return (view, index == 0 && candidates.count == 2)
            } catch CryptographyError.authenticationFailed {
                continue
            }
        }
        throw Unsettled(reason: reason)
    }

    static func slot(_ index: Int, of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = index * ContainerGeometry.slotSize
        return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + ContainerGeometry.slotSize)])
    }

    /// Writes a header into the slot that does not count now. Everything else about it is the caller's.
    mutating func writeHeader(_ header: ContainerHeader, _ cipher: inout ChunkCipher) throws {
        var header = header
        header.counter = view.header.counter + 1
        let target = 1 - view.currentSlot
        var slot = [UInt8](repeating: 0, count: ContainerGeometry.slotSize)
        try slot.withUnsafeMutableBytes { try header.encode(into: $0, &cipher) }
        try slot.withUnsafeBytes {
            try system.writeFully(
                descriptor.number, $0, at: Int64(target * ContainerGeometry.slotSize))
        }
        let start = target * ContainerGeometry.slotSize
        view.slots.replaceSubrange(start..<(start + ContainerGeometry.slotSize), with: slot)
        view.currentSlot = target
        view.header = header
        hasUnsynced = true
        hasWritten = true
    }
}

extension ContainerFile {
    /// Closes the descriptor and reports the error. The loan of the key ends with this value.
    consuming func close() throws(SystemError) {
        try descriptor.close()
    }
}
