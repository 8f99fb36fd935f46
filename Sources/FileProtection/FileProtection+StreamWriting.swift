import LinuxSystem
import ProtectedFiles
import ProtectionModel

extension FileProtection {
    /// Writes a whole file from a sequence of bytes, atomically and durably, without ever holding more of it than about
    /// 2 MiB. The class is chosen as by ``write(_:to:class:replacing:)``; it must be one that can be written when the stream
    /// begins, and class A has to stay unlocked to its end.
    ///
    /// Until the last byte has come the old file is what everybody sees. When the sequence throws, a lock takes the key
    /// away, or the task is cancelled, the old file stays and nothing is left beside it. What goes wrong while the
    /// sequence lets wait is noticed with its next element, and a sequence that does not end when the task is cancelled is
    /// waited for. A stream has a thread of its own as long as it lasts. Returns the bytes of
    /// content. `progress` is told after each 64 KiB.
    ///
    /// Throws what the sequence throws, and as `ProtectionError`: `cancelled`, `locked`, `unsupported`, `damaged`,
    /// `foreignKeybag`, `busy`, `system`.
    @discardableResult
    public func write<Bytes: AsyncSequence>(
        _ bytes: Bytes, to path: FilePath, class protectionClass: ProtectionClass? = nil,
        isolation: isolated (any Actor)? = #isolation, progress: WorkProgress.Observer? = nil
    ) async throws -> UInt64 where Bytes.Element == UInt8 {
        var iterator = bytes.makeAsyncIterator()
        return try await writeStream(to: path, protectionClass, isolation, progress) {
            var piece: [UInt8] = []
            piece.reserveCapacity(Self.pieceSize)
            while piece.count < Self.pieceSize, let byte = try await iterator.next(isolation: isolation) {
                piece.append(byte)
            }
            return piece.isEmpty ? nil : piece
        }
    }

    /// The same from a sequence of pieces: arrays, slices, or any other collection of bytes. Two pieces are held at a time.
    @discardableResult
    public func write<Pieces: AsyncSequence>(
        _ pieces: Pieces, to path: FilePath, class protectionClass: ProtectionClass? = nil,
        isolation: isolated (any Actor)? = #isolation, progress: WorkProgress.Observer? = nil
    ) async throws -> UInt64 where Pieces.Element: Collection, Pieces.Element.Element == UInt8 {
        var iterator = pieces.makeAsyncIterator()
        return try await writeStream(to: path, protectionClass, isolation, progress) {
            try await iterator.next(isolation: isolation).map { Array($0) }
        }
    }

    private static let pieceSize = 64 * 1024

    private func writeStream(
        to path: FilePath, _ protectionClass: ProtectionClass?, _ isolation: isolated (any Actor)?,
        _ progress: WorkProgress.Observer?, _ nextPiece: () async throws -> [UInt8]?
    ) async throws -> UInt64 {
        let channel = ByteChannel()
        let files = self.files
        let isStarted = BlockingThreads.startThread {
            channel.finish(
                Result {
                    try files.write(to: path, class: protectionClass) { try channel.take(into: $0) }.length
                })
        }
        guard isStarted else {
            throw ProtectionError(.system(ErrorNumber.wouldBlock), "there can be no further thread", path: path)
        }
        let tracker = ProgressTracker(WorkProgress(), progress)
        do {
            // What cannot be written at all fails before anything is asked of the sequence.
            guard await channel.begin(isolation: isolation) else {
                return try await channel.result(isolation: isolation).get()
            }
            while let piece = try await nextPiece() {
                if Task.isCancelled { break }
                guard await channel.send(piece, isolation: isolation) else { break }
                tracker.add(bytes: piece.count)
            }
        } catch {
            channel.end(Cancellation.error)
            _ = await channel.result(isolation: isolation)
            throw error
        }
        // Many sequences end without an error when their task is cancelled: what came so far is not the content.
        channel.end(Task.isCancelled ? Cancellation.error.at(path) : nil)
        return try await channel.result(isolation: isolation).get()
    }
}
