import Cryptography
import LinuxSystem
import SecretMemory
import ProtectionModel

extension ContainerFile {
    /// Bytes of log after which it is applied: a sixteenth of the content, 4 MiB at least and 64 MiB at most. Applying costs
    /// two syncs, so that a long file that is overwritten at random wants a longer log (`docs/benchmarks.md`).
    var logLimit: UInt64 { max(4 << 20, min(64 << 20, view.length / 16)) }
    /// Bytes left free between the content and the log, so that a growing file need not move its log.
    static let growthRoom: UInt64 = 4 << 20

    /// Reads what was added to the log since the last time, by whomever.
    ///
    /// Every chunk is opened as well: after a power cut an entry's header may be there without its chunk.
    mutating func readLog(_ cipher: inout ChunkCipher) throws {
        guard let log = view.header.log else { return }
        if log.sealedEntries > 0, view.logEntries == log.sealedEntries { return }
        let fresh = view
        var pending: [RedoEntry] = []
        var pendingStart = view.logEnd
        var position = view.logEnd
        var tag = view.lastTag
        let chunkSize = ContainerGeometry.chunkSize
        let room = RedoEntry.headerSize + chunkSize
        try withUnsafeTemporaryAllocation(byteCount: room + chunkSize, alignment: 16) { memory in
            let buffer = UnsafeMutableRawBufferPointer(rebasing: memory[..<room])
            let scratch = UnsafeMutableRawBufferPointer(rebasing: memory[room...])
            defer { Wipe.clear(scratch) }
            while log.sealedEntries == 0 || view.logEntries < log.sealedEntries {
                let count = try system.readFully(descriptor.number, into: buffer, at: Int64(position))
                let bytes = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
                guard
                    let entry = try RedoEntry(
                        decoding: bytes, log: log.identifier, sequence: UInt64(view.logEntries) + UInt64(pending.count),
                        previousTag: tag, &cipher),
                    count >= entry.size
                else { break }
                if let chunk = entry.chunk {
                    do {
                        try openLogged(
                            chunk, seal: UnsafeRawBufferPointer(rebasing: bytes[56..<96]),
                            ciphertext: UnsafeRawBufferPointer(rebasing: bytes[RedoEntry.headerSize..<room]),
                            into: scratch, &cipher)
                    } catch is Unsettled {
                        break
                    }
                }
                tag = RedoEntry.tag(of: bytes)
                position += UInt64(entry.size)
                pending.append(entry)
                if entry.isFinal {
                    view.take(pending, tag: tag, at: pendingStart)
                    pending = []
                    pendingStart = position
                }
            }
        }
        if log.sealedEntries > 0 {
            if view.logEntries < log.sealedEntries {
                // A sealed log was durable as a whole before the header said so. If it is no longer whole, it was
                // applied and its room given back: the places hold the content.
                view = fresh
                view.loggedChunks = [:]
            }
            view.length = view.header.length
        }
    }

    /// Announces a new, empty log behind the content and the room for growth.
    private mutating func beginLog(_ cipher: inout ChunkCipher) throws {
        var identifier: UInt64 = 0
        try withUnsafeMutableBytes(of: &identifier) { try system.random(into: $0) }
        let end = UInt64(ContainerGeometry.size(chunks: firstFreeChunk))
        var header = view.header
        header.log = ContainerHeader.Log(offset: end + Self.growthRoom, identifier: identifier, sealedEntries: 0)
        header.length = view.length
        try writeHeader(header, &cipher)
        let slots = view.slots
        view = ContainerView(slots: slots, currentSlot: view.currentSlot, header: view.header)
    }

    /// One chunk to be logged: its number and where its sealed bytes are.
    struct SealedChunk {
        let chunk: UInt64
        let ciphertext: UnsafeRawBufferPointer
        let seal: UnsafeRawBufferPointer
    }

    /// Appends one whole operation to the log: its chunks and the length after it.
    mutating func appendToLog(
        _ chunks: [SealedChunk], lengthAfter: UInt64, _ cipher: inout ChunkCipher
    ) throws {
        if view.header.log == nil { try beginLog(&cipher) }
        guard let log = view.header.log else { return }
        let chunkSize = ContainerGeometry.chunkSize
        let total = chunks.isEmpty ? RedoEntry.headerSize : chunks.count * (RedoEntry.headerSize + chunkSize)
        var entries: [RedoEntry] = []
        var tag = view.lastTag
        try withUnsafeTemporaryAllocation(byteCount: total, alignment: 16) { buffer in
            var position = 0
            let count = max(chunks.count, 1)
            for index in 0..<count {
                let sealed = chunks.isEmpty ? nil : chunks[index]
                let entry = RedoEntry(
                    logIdentifier: log.identifier, sequence: UInt64(view.logEntries) + UInt64(index), previousTag: tag,
                    chunk: sealed?.chunk, chunkSeal: sealed.map { Array($0.seal) } ?? [], lengthAfter: lengthAfter,
                    isFinal: index == count - 1)
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[position..<(position + entry.size)])
                tag = try entry.encode(into: part, &cipher)
                if let sealed {
                    UnsafeMutableRawBufferPointer(rebasing: part[RedoEntry.headerSize...])
                        .copyMemory(from: sealed.ciphertext)
                }
                entries.append(entry)
                position += entry.size
            }
            try system.writeFully(descriptor.number, UnsafeRawBufferPointer(buffer), at: Int64(view.logEnd))
        }
        view.take(entries, tag: tag, at: view.logEnd)
        hasUnsynced = true
        hasWritten = true
    }

    /// True when the log has grown past its limit.
    var logIsLong: Bool {
        guard let log = view.header.log else { return false }
        return view.logEnd - log.offset >= logLimit
    }

    /// Brings the log's chunks to their places. Its room is the next log's, until ``cutTail()`` gives it back.
    ///
    /// Order: the log durable; a header that says so and carries the new length; the places written and durable, and that
    /// header with them; a header without log. A crash before the second sync finds the whole log and applies it again;
    /// one after it may find the log gone or written over, and the places whole.
    ///
    /// Content that became shorter needs a third sync: what is cut off must be gone from the disk before anything is
    /// written there again, or a crash could bring it back as part of what was appended since.
    mutating func applyLog(_ cipher: inout ChunkCipher) throws {
        guard let log = view.header.log else { return }
        if log.sealedEntries > 0 || view.logEntries > 0 {
            // Of a log that was sealed before, nobody knows any more whether it cut something off.
            let leavesChunksBehind =
                log.sealedEntries > 0 || firstFreeChunk > ContainerGeometry.chunkCount(length: view.length)
            if log.sealedEntries == 0 { try sealLog(log, &cipher) }
            try copyLoggedChunksToPlaces()
            try synchronizeData()
            if leavesChunksBehind {
                try cutTail()
                try synchronizeData()
                placedChunks = 0
            }
        }
        var header = view.header
        header.length = view.length
        header.syncedLength = log.sealedEntries == 0 && view.logEntries == 0 ? view.header.syncedLength : view.length
        header.log = nil
        try writeHeader(header, &cipher)
        view = ContainerView(slots: view.slots, currentSlot: view.currentSlot, header: view.header)
        unsyncedBytes = 0
    }

    /// Makes the log durable, and says so in a header that carries the new length.
    private mutating func sealLog(_ log: ContainerHeader.Log, _ cipher: inout ChunkCipher) throws {
        try synchronizeData()
        var header = view.header
        header.length = view.length
        header.syncedLength = view.length
        header.log = ContainerHeader.Log(
            offset: log.offset, identifier: log.identifier, sealedEntries: view.logEntries)
        try writeHeader(header, &cipher)
    }

    /// Gives back what lies behind the last chunk when no log is announced there.
    func cutTail() throws {
        try system.truncate(
            descriptor.number,
            to: ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: view.length)))
    }

    /// Copies sealed bytes as they are: neither key nor plaintext is needed.
    private func copyLoggedChunksToPlaces() throws {
        let chunkSize = ContainerGeometry.chunkSize
        let sealSize = ContainerGeometry.sealSize
        let entrySize = RedoEntry.headerSize + chunkSize
        let sorted = view.loggedChunks.sorted { $0.key < $1.key }
        let most = 64
        try withUnsafeTemporaryAllocation(byteCount: entrySize + most * (chunkSize + sealSize), alignment: 16) {
            memory in
            let entry = UnsafeMutableRawBufferPointer(rebasing: memory[..<entrySize])
            let data = UnsafeMutableRawBufferPointer(rebasing: memory[entrySize..<(entrySize + most * chunkSize)])
            let seals = UnsafeMutableRawBufferPointer(rebasing: memory[(entrySize + most * chunkSize)...])
            var index = 0
            while index < sorted.count {
                let first = sorted[index].key
                var run = 0
                let limit = min(most, Int(ContainerGeometry.contiguous(from: first)))
                while run < limit, index + run < sorted.count, sorted[index + run].key == first + UInt64(run) {
                    let offset = Int64(sorted[index + run].value)
                    guard try system.readFully(descriptor.number, into: entry, at: offset) == entrySize else {
                        throw ProtectionError(.damaged(.chunk), "the redo log was cut short while it was applied")
                    }
                    UnsafeMutableRawBufferPointer(rebasing: data[(run * chunkSize)..<((run + 1) * chunkSize)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: entry[RedoEntry.headerSize...]))
                    UnsafeMutableRawBufferPointer(rebasing: seals[(run * sealSize)..<((run + 1) * sealSize)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: entry[56..<96]))
                    run += 1
                }
                try writePlaces(
                    from: first, data: UnsafeRawBufferPointer(rebasing: data[..<(run * chunkSize)]),
                    seals: UnsafeRawBufferPointer(rebasing: seals[..<(run * sealSize)]))
                index += run
            }
        }
    }

    /// Writes sealed chunks that lie side by side, and their seals.
    func writePlaces(from first: UInt64, data: UnsafeRawBufferPointer, seals: UnsafeRawBufferPointer) throws {
        try system.writeFully(descriptor.number, data, at: ContainerGeometry.chunkOffset(first))
        try system.writeFully(descriptor.number, seals, at: ContainerGeometry.sealOffset(first))
    }
}
