import Cryptography
import LinuxSystem
import SecretMemory
import ProtectionModel

/// What a chunk's seal binds it to, besides the file key: its number. 24 bytes.
struct ChunkAssociation {
    private var bytes: [UInt8] = Array("candado/v1/chunk".utf8) + [UInt8](repeating: 0, count: 8)

    /// Runs `body` with the associated data of a chunk.
    mutating func of<Result>(_ chunk: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeMutableBytes { buffer in
            buffer.store(chunk, at: 16)
            return try body(UnsafeRawBufferPointer(buffer))
        }
    }
}

extension ContainerFile {
    /// Chunks read with one call at most.
    private static let chunksPerRead: UInt64 = 64

    /// Reads content at an offset in bytes; returns how many bytes, 0 at the end.
    func readContent(
        into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64, _ cipher: inout ChunkCipher
    ) throws -> Int {
        guard offset < view.length, !buffer.isEmpty else { return 0 }
        let size = ContainerGeometry.chunkSize
        let total = Int(min(UInt64(buffer.count), view.length - offset))
        var done = 0
        while done < total {
            let position = offset + UInt64(done)
            let chunk = position / UInt64(size)
            let inside = Int(position % UInt64(size))
            let left = total - done
            if inside == 0, left >= size {
                let count = UInt64(left / size)
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<(done + Int(count) * size)])
                try readChunks(from: chunk, into: target, &cipher)
                done += Int(count) * size
            } else {
                let part = min(size - inside, left)
                try withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { scratch in
                    // Plaintext of a class that may be locked next must not stay in memory that nobody owns.
                    defer { Wipe.clear(scratch) }
                    try readChunks(from: chunk, into: scratch, &cipher)
                    UnsafeMutableRawBufferPointer(rebasing: buffer[done..<(done + part)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: scratch[inside..<(inside + part)]))
                }
                done += part
            }
        }
        return total
    }

    /// Reads whole chunks from the log or their places into `buffer`, whose size is a multiple of a chunk's.
    func readChunks(
        from first: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher
    ) throws {
        let size = ContainerGeometry.chunkSize
        let end = first + UInt64(buffer.count / size)
        var chunk = first
        while chunk < end {
            let start = Int(chunk - first) * size
            if let entry = view.loggedChunks[chunk] {
                let target = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + size)])
                try readLoggedChunk(chunk, entryAt: entry, into: target, &cipher)
                chunk += 1
                continue
            }
            var run = min(end - chunk, ContainerGeometry.contiguous(from: chunk), Self.chunksPerRead)
            if !view.loggedChunks.isEmpty {
                var clear: UInt64 = 1
                while clear < run, view.loggedChunks[chunk + clear] == nil { clear += 1 }
                run = clear
            }
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<(start + Int(run) * size)])
            try readPlaces(from: chunk, count: Int(run), into: target, &cipher)
            chunk += run
        }
    }

    /// Reads chunks that lie side by side, and opens them where they are.
    private func readPlaces(
        from first: UInt64, count: Int, into buffer: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher
    ) throws {
        let size = ContainerGeometry.chunkSize
        let sealSize = ContainerGeometry.sealSize
        try withUnsafeTemporaryAllocation(byteCount: count * sealSize, alignment: 16) { seals in
            let sealBytes = try system.readFully(
                descriptor.number, into: seals, at: ContainerGeometry.sealOffset(first))
            let bytes = try system.readFully(
                descriptor.number, into: buffer, at: ContainerGeometry.chunkOffset(first))
            let whole = min(sealBytes / sealSize, bytes / size)
            var association = ChunkAssociation()
            for index in 0..<count {
                let chunk = first + UInt64(index)
                guard index < whole else {
                    Wipe.clear(buffer)
                    throw Unsettled(reason: Self.damaged(chunk, "is missing: the file was cut short"))
                }
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[(index * size)..<((index + 1) * size)])
                let seal = UnsafeRawBufferPointer(rebasing: seals[(index * sealSize)..<((index + 1) * sealSize)])
                do {
                    try association.of(chunk) { associated in
                        try cipher.open(
                            UnsafeRawBufferPointer(part), seal: seal, associatedData: associated, into: part)
                    }
                } catch CryptographyError.authenticationFailed {
                    Wipe.clear(buffer)
                    throw Unsettled(reason: Self.damaged(chunk, "does not authenticate"))
                }
            }
        }
    }

    /// Reads one chunk out of the log.
    private func readLoggedChunk(
        _ chunk: UInt64, entryAt offset: UInt64, into buffer: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher
    ) throws {
        let entrySize = RedoEntry.headerSize + ContainerGeometry.chunkSize
        try withUnsafeTemporaryAllocation(byteCount: entrySize, alignment: 16) { entry in
            let count = try system.readFully(descriptor.number, into: entry, at: Int64(offset))
            guard count == entrySize else {
                throw Unsettled(reason: Self.damaged(chunk, "is missing: the redo log was cut short"))
            }
            let bytes = UnsafeRawBufferPointer(entry)
            try openLogged(
                chunk, seal: UnsafeRawBufferPointer(rebasing: bytes[56..<96]),
                ciphertext: UnsafeRawBufferPointer(rebasing: bytes[RedoEntry.headerSize...]), into: buffer, &cipher)
        }
    }

    /// Opens a chunk that lies in the log.
    func openLogged(
        _ chunk: UInt64, seal: UnsafeRawBufferPointer, ciphertext: UnsafeRawBufferPointer,
        into buffer: UnsafeMutableRawBufferPointer, _ cipher: inout ChunkCipher
    ) throws {
        var association = ChunkAssociation()
        do {
            try association.of(chunk) { associated in
                try cipher.open(ciphertext, seal: seal, associatedData: associated, into: buffer)
            }
        } catch CryptographyError.authenticationFailed {
            throw Unsettled(reason: Self.damaged(chunk, "does not authenticate in the redo log"))
        }
    }

    static func damaged(_ chunk: UInt64, _ what: String) -> ProtectionError {
        ProtectionError(.damaged(.chunk), "chunk \(chunk) of the container \(what)")
    }

    /// The content's length after a crash: chunks that were never durable count up to the first that is not whole.
    func lengthOfWholeChunks(_ cipher: inout ChunkCipher) throws -> UInt64 {
        let size = UInt64(ContainerGeometry.chunkSize)
        let first = ContainerGeometry.chunkCount(length: min(view.header.syncedLength, view.length))
        let end = ContainerGeometry.chunkCount(length: view.length)
        guard first < end else { return view.length }
        return try withUnsafeTemporaryAllocation(byteCount: Int(size), alignment: 16) { scratch in
            defer { Wipe.clear(scratch) }
            for chunk in first..<end {
                do {
                    try readChunks(from: chunk, into: scratch, &cipher)
                } catch is Unsettled {
                    return max(chunk * size, min(view.header.syncedLength, view.length))
                }
            }
            return view.length
        }
    }
}
