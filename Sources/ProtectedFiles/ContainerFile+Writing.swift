import Cryptography
import LinuxSystem
import SecretMemory
import ProtectionModel

extension ContainerFile {
    /// Chunks changed by one step at most: 1 MiB of content.
    private static let chunksPerStep = 256
    /// Bytes of growth that no sync covers, after which one is made, so that the next one to open the file after a crash
    /// has little to look through.
    private static let unsyncedLimit: UInt64 = 64 << 20
    /// Bytes of growth in one call before which the disk's room is looked at.
    private static let lookedAtGrowth: UInt64 = 16 << 20

    /// Writes content at an offset in bytes. Up to 1 MiB is one step: after a crash all of it is there or none, but that
    /// new chunks at the end may be missing.
    mutating func writeContent(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, _ cipher: inout ChunkCipher
    ) throws {
        guard !bytes.isEmpty else { return }
        guard offset <= ContainerGeometry.maximumLength,
            UInt64(bytes.count) <= ContainerGeometry.maximumLength - offset
        else { throw ProtectionError(.system(ErrorNumber.fileTooLarge), "the file would grow too large") }
        try requireRoom(for: offset + UInt64(bytes.count))
        if offset > view.length { try extend(to: offset, &cipher) }
        var done = 0
        while done < bytes.count {
            let position = offset + UInt64(done)
            let inside = Int(position % UInt64(ContainerGeometry.chunkSize))
            let part = min(bytes.count - done, Self.chunksPerStep * ContainerGeometry.chunkSize - inside)
            try writeStep(
                UnsafeRawBufferPointer(rebasing: bytes[done..<(done + part)]), count: part, at: position, &cipher)
            done += part
        }
    }

    /// Throws `system(ENOSPC)` before anything is done when the disk certainly has no room for a large growth: a file is
    /// dense, so that trying it would fill the disk with zeros first.
    private func requireRoom(for length: UInt64) throws {
        guard length > view.length, length - view.length >= Self.lookedAtGrowth else { return }
        let now = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: view.length))
        let then = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: length))
        let available = try system.fileSystem(descriptor.number).availableBytes
        // 0 is also what file systems say that do not tell.
        guard available == 0 || then - now <= available else {
            throw ProtectionError(.system(ErrorNumber.noSpace), "the disk has no room for a file of \(length) bytes")
        }
    }

    /// Makes the content longer or shorter. What is added reads as zeros.
    mutating func changeLength(to length: UInt64, _ cipher: inout ChunkCipher) throws {
        guard length <= ContainerGeometry.maximumLength else {
            throw ProtectionError(.system(ErrorNumber.fileTooLarge), "the file would grow too large")
        }
        if length > view.length {
            try requireRoom(for: length)
            return try extend(to: length, &cipher)
        }
        guard length < view.length else { return }
        let size = ContainerGeometry.chunkSize
        let inside = Int(length % UInt64(size))
        guard inside > 0 else { return try appendToLog([], lengthAfter: length, &cipher) }
        // The rest of the last chunk is sealed as zeros, so that growing again need not touch it.
        let chunk = length / UInt64(size)
        try withUnsafeTemporaryAllocation(byteCount: 2 * size + ContainerGeometry.sealSize, alignment: 16) { memory in
            let plain = UnsafeMutableRawBufferPointer(rebasing: memory[..<size])
            let sealed = UnsafeMutableRawBufferPointer(rebasing: memory[size..<(2 * size)])
            let seal = UnsafeMutableRawBufferPointer(rebasing: memory[(2 * size)...])
            defer { Wipe.clear(plain) }
            try readChunks(from: chunk, into: plain, &cipher)
            Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: plain[inside...]))
            var association = ChunkAssociation()
            try association.of(chunk) {
                try cipher.seal(UnsafeRawBufferPointer(plain), associatedData: $0, into: sealed, seal: seal)
            }
            try appendToLog(
                [
                    SealedChunk(
                        chunk: chunk, ciphertext: UnsafeRawBufferPointer(sealed), seal: UnsafeRawBufferPointer(seal))
                ],
                lengthAfter: length, &cipher)
        }
    }

    /// Grows with zeros. A chunk that holds the present end is zero behind it already and is not written again.
    private mutating func extend(to length: UInt64, _ cipher: inout ChunkCipher) throws {
        let size = UInt64(ContainerGeometry.chunkSize)
        var position = ContainerGeometry.chunkCount(length: view.length) * size
        if length <= position { return try setLength(length, &cipher) }
        if position > view.length { try setLength(position, &cipher) }
        while position < length {
            let part = min(length - position, UInt64(Self.chunksPerStep) * size)
            try writeStep(nil, count: Int(part), at: position, &cipher)
            position += part
        }
    }

    /// Records a new, greater length without touching a chunk.
    private mutating func setLength(_ length: UInt64, _ cipher: inout ChunkCipher) throws {
        if view.header.log != nil { return try appendToLog([], lengthAfter: length, &cipher) }
        var header = view.header
        header.length = length
        try writeHeader(header, &cipher)
        view.length = length
    }

    /// Seals and writes the chunks that one step touches. `bytes` nil means zeros.
    ///
    /// New chunks go to their places first: nobody reads them before the length covers them. Chunks that exist, or that
    /// a crash could bring back, go to the log, whose last entry carries the new length.
    private mutating func writeStep(
        _ bytes: UnsafeRawBufferPointer?, count: Int, at offset: UInt64, _ cipher: inout ChunkCipher
    ) throws {
        let size = ContainerGeometry.chunkSize
        let sealSize = ContainerGeometry.sealSize
        let first = offset / UInt64(size)
        let end = ContainerGeometry.chunkCount(length: offset + UInt64(count))
        let chunks = Int(end - first)
        try makeRoom(upTo: end, &cipher)
        let lengthAfter = max(view.length, offset + UInt64(count))
        let free = firstFreeChunk
        try withUnsafeTemporaryAllocation(byteCount: chunks * (size + sealSize) + size, alignment: 16) { memory in
            let sealed = UnsafeMutableRawBufferPointer(rebasing: memory[..<(chunks * size)])
            let seals = UnsafeMutableRawBufferPointer(rebasing: memory[(chunks * size)..<(chunks * (size + sealSize))])
            let scratch = UnsafeMutableRawBufferPointer(rebasing: memory[(chunks * (size + sealSize))...])
            defer { Wipe.clear(scratch) }
            var logged: [SealedChunk] = []
            for index in 0..<chunks {
                let chunk = first + UInt64(index)
                let target = UnsafeMutableRawBufferPointer(rebasing: sealed[(index * size)..<((index + 1) * size)])
                let seal = UnsafeMutableRawBufferPointer(rebasing: seals[(index * sealSize)..<((index + 1) * sealSize)])
                let plain = try plaintext(of: chunk, bytes, count: count, at: offset, scratch: scratch, &cipher)
                var association = ChunkAssociation()
                try association.of(chunk) {
                    try cipher.seal(plain, associatedData: $0, into: target, seal: seal)
                }
                if chunk < free {
                    logged.append(
                        SealedChunk(
                            chunk: chunk, ciphertext: UnsafeRawBufferPointer(target), seal: UnsafeRawBufferPointer(seal)
                        ))
                }
            }
            try writeNewChunks(
                from: max(first, free), to: end, first: first, sealed: UnsafeRawBufferPointer(sealed),
                seals: UnsafeRawBufferPointer(seals))
            if logged.isEmpty {
                if lengthAfter > view.length { try setLength(lengthAfter, &cipher) }
            } else {
                try appendToLog(logged, lengthAfter: lengthAfter, &cipher)
            }
        }
        if logIsLong {
            try applyLog(&cipher)
        } else if unsyncedBytes >= Self.unsyncedLimit {
            try makeDurable(&cipher)
        }
    }

    /// Where the new plaintext of a chunk is: in the caller's bytes when they cover it, else put together in `scratch`.
    private func plaintext(
        of chunk: UInt64, _ bytes: UnsafeRawBufferPointer?, count: Int, at offset: UInt64,
        scratch: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher
    ) throws -> UnsafeRawBufferPointer {
        let size = UInt64(ContainerGeometry.chunkSize)
        let start = chunk * size
        let from = max(start, offset)
        let to = min(start + size, offset + UInt64(count))
        if let bytes, from == start, to == start + size {
            let position = Int(start - offset)
            return UnsafeRawBufferPointer(rebasing: bytes[position..<(position + Int(size))])
        }
        if chunk < ContainerGeometry.chunkCount(length: view.length), from > start || to < start + size {
            try readChunks(from: chunk, into: scratch, &cipher)
        } else {
            Wipe.clear(scratch)
        }
        let target = UnsafeMutableRawBufferPointer(rebasing: scratch[Int(from - start)..<Int(to - start)])
        if let bytes {
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(from - offset)..<Int(to - offset)]))
        } else {
            Wipe.clear(target)
        }
        return UnsafeRawBufferPointer(scratch)
    }

    /// Writes the chunks of a step that go straight to their places.
    private mutating func writeNewChunks(
        from start: UInt64, to end: UInt64, first: UInt64, sealed: UnsafeRawBufferPointer, seals: UnsafeRawBufferPointer
    ) throws {
        let size = ContainerGeometry.chunkSize
        let sealSize = ContainerGeometry.sealSize
        var chunk = start
        while chunk < end {
            let run = min(end - chunk, ContainerGeometry.contiguous(from: chunk))
            let from = Int(chunk - first)
            let to = from + Int(run)
            placedChunks = max(placedChunks, chunk + run)
            try writePlaces(
                from: chunk, data: UnsafeRawBufferPointer(rebasing: sealed[(from * size)..<(to * size)]),
                seals: UnsafeRawBufferPointer(rebasing: seals[(from * sealSize)..<(to * sealSize)]))
            chunk += run
            unsyncedBytes += run * UInt64(size)
            hasUnsynced = true
            hasWritten = true
        }
    }

    /// Sees to it that chunks up to `end` do not run into the log.
    private mutating func makeRoom(upTo end: UInt64, _ cipher: inout ChunkCipher) throws {
        guard let log = view.header.log, UInt64(ContainerGeometry.size(chunks: end)) > log.offset else { return }
        try applyLog(&cipher)
    }

    /// Makes everything written so far durable, and says so in the header unless the log does.
    mutating func makeDurable(_ cipher: inout ChunkCipher) throws {
        try synchronizeData()
        if view.header.log == nil {
            if view.header.syncedLength < view.length {
                var header = view.header
                header.syncedLength = view.length
                try writeHeader(header, &cipher)
            }
        } else if unsyncedBytes >= Self.unsyncedLimit {
            try applyLog(&cipher)
        }
        hasUnsynced = false
        unsyncedBytes = 0
    }

    /// Writes what no header calls durable once more, byte for byte: whoever wrote it may have met a failed sync, and then
    /// the page cache has what the disk has not.
    private func writeUnsyncedAnew() throws {
        if let log = view.header.log { try writeAnew(from: Int64(log.offset), to: Int64(view.logEnd)) }
        let first = ContainerGeometry.chunkCount(length: min(view.header.syncedLength, view.length))
        let end = ContainerGeometry.chunkCount(length: view.length)
        guard first < end else { return }
        let seals = Int64(ContainerGeometry.contiguous(from: first)) * Int64(ContainerGeometry.sealSize)
        try writeAnew(
            from: ContainerGeometry.sealOffset(first), to: ContainerGeometry.sealOffset(first) + seals)
        // Later groups lie behind with their seals.
        try writeAnew(from: ContainerGeometry.chunkOffset(first), to: ContainerGeometry.size(chunks: end))
    }

    private func writeAnew(from start: Int64, to end: Int64) throws {
        try withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            var position = start
            while position < end {
                let part = UnsafeMutableRawBufferPointer(
                    rebasing: buffer.prefix(Int(min(Int64(buffer.count), end - position))))
                let count = try system.readFully(descriptor.number, into: part, at: position)
                guard count > 0 else { return }
                try system.writeFully(
                    descriptor.number, UnsafeRawBufferPointer(rebasing: part.prefix(count)), at: position)
                position += Int64(count)
            }
        }
    }

    /// What a crash left: replays the log and clips a tail that never became durable. For handles that may write.
    mutating func recover(_ cipher: inout ChunkCipher) throws {
        try writeUnsyncedAnew()
        let whole = try lengthOfWholeChunks(&cipher)
        if whole < view.length { try changeLength(to: whole, &cipher) }
        try applyLog(&cipher)
        if view.header.syncedLength < view.length { try makeDurable(&cipher) }
        // What a broken append left behind the content must be gone before something else is appended there.
        try cutTail()
        try synchronizeData()
    }
}
