import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// Writes a whole new container from front to back, on several threads where the content is long.
enum ContainerWriter {
    /// For the first block and group, which is all that most files have.
    private static let firstBuffers = WorkBuffers(
        size: (Int(ContainerGeometry.firstGroupChunks) + 1) * ContainerGeometry.chunkSize)

    /// Where content comes from: fills the buffer, and returns fewer bytes than asked only at the end.
    typealias Source = @Sendable (UnsafeMutableRawBufferPointer) throws -> Int

    private struct Progress {
        var nextGroup: UInt64 = 1
        var length: UInt64
        var ended = false
        var failure: (any Error)?
    }

    /// Fills an empty open file. Both header slots say the same, so that each can stand in for the other. Nothing is
    /// synchronised: the caller does that before the file gets its name.
    ///
    /// Returns the bytes of content.
    static func write(
        to descriptor: Int32, _ newKey: NewFileKey, _ system: any SystemCalls, from source: @escaping Source
    ) throws -> UInt64 {
        let chunkSize = ContainerGeometry.chunkSize
        let firstRoom = Int(ContainerGeometry.firstGroupChunks) * chunkSize
        // The smallest buffer that will do: most files are short.
        var block = [UInt8](repeating: 0, count: ContainerGeometry.blockSize)
        var length: UInt64 = 0
        var isWhole = false
        try firstBuffers.withBuffer { buffer in
            Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: buffer[..<ContainerGeometry.blockSize]))
            let content = UnsafeMutableRawBufferPointer(rebasing: buffer[chunkSize...])
            let count = try source(content)
            length = UInt64(count)
            let used = Int(ContainerGeometry.chunkCount(length: length)) * chunkSize
            let seals = UnsafeMutableRawBufferPointer(rebasing: buffer[..<chunkSize])
            try seal(
                content, count: count, firstChunk: 0,
                seals: UnsafeMutableRawBufferPointer(rebasing: seals[ContainerGeometry.slotsSize...]), newKey.lease)
            isWhole = count < firstRoom
            if isWhole {
                try writeSlots(into: seals, length: length, newKey)
                try system.writeFully(
                    descriptor, UnsafeRawBufferPointer(rebasing: buffer[..<(chunkSize + used)]), at: 0)
            } else {
                block = Array(seals)
                try system.writeFully(
                    descriptor, UnsafeRawBufferPointer(rebasing: buffer[chunkSize..<(chunkSize + used)]),
                    at: ContainerGeometry.chunkOffset(0))
            }
        }
        if isWhole { return length }
        length = try writeGroups(to: descriptor, newKey.lease, system, from: source, length: length)
        try block.withUnsafeMutableBytes { try writeSlots(into: $0, length: length, newKey) }
        try block.withUnsafeBytes { try system.writeFully(descriptor, $0, at: 0) }
        return length
    }

    private static func withBuffer(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 4096)
        defer { buffer.deallocate() }
        buffer.prefix(ContainerGeometry.blockSize).withMemoryRebound(to: UInt8.self) { $0.update(repeating: 0) }
        try body(buffer)
    }

    /// Seals content where it is, the last chunk filled up with zeros.
    private static func seal(
        _ content: UnsafeMutableRawBufferPointer, count: Int, firstChunk: UInt64,
        seals: UnsafeMutableRawBufferPointer, _ lease: any FileKeyLease
    ) throws {
        let chunkSize = ContainerGeometry.chunkSize
        let sealSize = ContainerGeometry.sealSize
        let chunks = Int(ContainerGeometry.chunkCount(length: UInt64(count)))
        if chunks == 0 { return }
        Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: content[count..<(chunks * chunkSize)]))
        try lease.withCipher { cipher in
            var association = ChunkAssociation()
            for index in 0..<chunks {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: content[(index * chunkSize)..<((index + 1) * chunkSize)])
                let seal = UnsafeMutableRawBufferPointer(
                    rebasing: seals[(index * sealSize)..<((index + 1) * sealSize)])
                try association.of(firstChunk + UInt64(index)) {
                    try cipher.seal(UnsafeRawBufferPointer(part), associatedData: $0, into: part, seal: seal)
                }
            }
        }
    }

    private static func writeSlots(
        into block: UnsafeMutableRawBufferPointer, length: UInt64, _ newKey: NewFileKey
    ) throws {
        try newKey.lease.withCipher { cipher in
            for slot in 0..<2 {
                let start = slot * ContainerGeometry.slotSize
                let header = ContainerHeader(
                    counter: UInt64(slot) + 1, length: length, syncedLength: length, log: nil, record: newKey.record)
                try header.encode(
                    into: UnsafeMutableRawBufferPointer(
                        rebasing: block[start..<(start + ContainerGeometry.slotSize)]), &cipher)
            }
        }
    }

    /// Writes the groups after the first, each with one call: its block of seals and its chunks lie side by side.
    private static func writeGroups(
        to descriptor: Int32, _ lease: any FileKeyLease, _ system: any SystemCalls, from source: @escaping Source,
        length: UInt64
    ) throws -> UInt64 {
        let chunkSize = ContainerGeometry.chunkSize
        let room = Int(ContainerGeometry.groupChunks) * chunkSize
        let progress = Shared(Progress(length: length))
        WorkerThreads.run(min(4, WorkerThreads.recommendedCount)) { _ in
            withBuffer(chunkSize + room) { buffer in
                let content = UnsafeMutableRawBufferPointer(rebasing: buffer[chunkSize...])
                while true {
                    let taken: (group: UInt64, count: Int)? = progress.value.withLock { progress in
                        guard !progress.ended, progress.failure == nil else { return nil }
                        do {
                            let count = try source(content)
                            progress.ended = count < room
                            progress.length += UInt64(count)
                            let group = progress.nextGroup
                            progress.nextGroup += 1
                            return count == 0 ? nil : (group, count)
                        } catch {
                            progress.failure = error
                            return nil
                        }
                    }
                    guard let taken else { return }
                    do {
                        let first =
                            ContainerGeometry.firstGroupChunks + (taken.group - 1) * ContainerGeometry.groupChunks
                        let used = Int(ContainerGeometry.chunkCount(length: UInt64(taken.count))) * chunkSize
                        let seals = UnsafeMutableRawBufferPointer(rebasing: buffer[..<chunkSize])
                        try seal(content, count: taken.count, firstChunk: first, seals: seals, lease)
                        if used < room {
                            let sealed = used / chunkSize * ContainerGeometry.sealSize
                            Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: seals[sealed...]))
                        }
                        try system.writeFully(
                            descriptor, UnsafeRawBufferPointer(rebasing: buffer[..<(chunkSize + used)]),
                            at: ContainerGeometry.sealOffset(first))
                    } catch {
                        progress.value.withLock { $0.failure = $0.failure ?? error }
                        return
                    }
                }
            }
        }
        return try progress.value.withLock { progress in
            if let failure = progress.failure { throw failure }
            return progress.length
        }
    }
}

/// A value that several threads share behind a lock.
final class Shared<Value>: Sendable {
    let value: Mutex<Value>
    init(_ value: sending Value) { self.value = Mutex(value) }
}
