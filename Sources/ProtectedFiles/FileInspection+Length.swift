import LinuxSystem
import ProtectionModel

extension FileInspection {
    /// Bytes of content of a container, as its header and its redo log claim; nil for what is none, or when no header
    /// decodes. What was written through a handle counts, whether or not it has been brought to its place.
    ///
    /// Needs no key and works in every lock state: like the class, it is a claim. `descriptor` is open for reading.
    public static func contentLength(
        of descriptor: Int32, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> UInt64? {
        try ProtectionError.mapping(at: nil) {
            var slots = try readSlots(descriptor, system)
            var length: UInt64?
            // A writer that applies its log meanwhile changes the header first: then what was read is of two times.
            for _ in 0..<10 {
                length = try claimedLength(slots, descriptor, system)
                let now = try readSlots(descriptor, system)
                if now == slots { break }
                slots = now
            }
            return length
        }
    }

    /// The same by path, which may be relative to an open directory. Symbolic links are not followed.
    public static func contentLength(
        of path: FilePath, in directory: Int32 = currentDirectory, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> UInt64? {
        try ProtectionError.mapping(at: path) {
            let descriptor = try system.openFile(path, in: directory, [.read, .noFollow, .nonBlocking])
            return try contentLength(of: descriptor.number, system)
        }
    }

    private static func readSlots(_ descriptor: Int32, _ system: any SystemCalls) throws(SystemError) -> [UInt8] {
        var slots = [UInt8](repeating: 0, count: ContainerGeometry.slotsSize)
        let outcome: Result<Int, SystemError> = slots.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try system.readFully(descriptor, into: buffer, at: 0) }
        }
        slots.removeLast(slots.count - (try outcome.get()))
        return slots
    }

    private static func claimedLength(
        _ slots: [UInt8], _ descriptor: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> UInt64? {
        let header = slots.withUnsafeBytes { bytes in
            let starts = stride(from: 0, to: bytes.count, by: ContainerGeometry.slotSize)
            let headers = starts.compactMap { start in
                let end = min(start + ContainerGeometry.slotSize, bytes.count)
                return try? ContainerHeader(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            }
            return headers.max { $0.counter < $1.counter }
        }
        // The length of a sealed log is in the header.
        guard let header, let log = header.log, log.sealedEntries == 0 else { return header?.length }
        return try length(after: log, header.length, descriptor, system)
    }

    /// The length after the last whole operation of a log, from the fields of its entries that are in the clear.
    private static func length(
        after log: ContainerHeader.Log, _ before: UInt64, _ descriptor: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> UInt64 {
        let size = try system.status(descriptor).size
        var length = before
        var position = log.offset
        var sequence: UInt64 = 0
        var tag = [UInt8](repeating: 0, count: RedoEntry.tagSize)
        var bytes = [UInt8](repeating: 0, count: RedoEntry.headerSize)
        while let offset = Int64(exactly: position) {
            let outcome: Result<Int, SystemError> = bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(SystemError) in try system.readFully(descriptor, into: buffer, at: offset) }
            }
            guard try outcome.get() == bytes.count else { break }
            let entry = bytes.withUnsafeBytes { buffer in
                RedoEntry(claimedBy: buffer, log: log.identifier, sequence: sequence, previousTag: tag)
            }
            // The last one may be without its chunk: then the writer was killed in the middle of it.
            guard let entry, Int64(entry.size) <= size - offset else { break }
            tag = bytes.withUnsafeBytes { RedoEntry.tag(of: $0) }
            position += UInt64(entry.size)
            sequence += 1
            if entry.isFinal { length = entry.lengthAfter }
        }
        return length
    }
}
