/// Where things lie in a container: `docs/formats/container.md`, section "Places".
///
/// The first block holds the two header slots and the seals of the first ``firstGroupChunks`` chunks; those chunks
/// follow. Then come groups of one block of seals and ``groupChunks`` chunks each. Every chunk begins on a block
/// border, so that an aligned 4 KiB write of a mount or a database touches one chunk
/// (`docs/decisions/container-layout.md` has the measurement).
enum ContainerGeometry {
    /// Bytes of plaintext, and of ciphertext, in a chunk.
    static let chunkSize = 4096
    /// Bytes of a block of seals.
    static let blockSize = 4096
    /// Bytes of one header slot: an aligned sector, which a power cut leaves old or new.
    static let slotSize = 512
    /// Bytes of both header slots.
    static let slotsSize = 1024
    /// Bytes of a seal: nonce and tag.
    static let sealSize = 40
    /// Chunks whose seals share the header's block.
    static let firstGroupChunks: UInt64 = 76
    /// Chunks of every later group.
    static let groupChunks: UInt64 = 102
    /// Bytes of content at most, so that every place stays below the offsets that locks use.
    static let maximumLength: UInt64 = 1 << 60

    /// How many chunks hold so many bytes of content.
    static func chunkCount(length: UInt64) -> UInt64 { (length + UInt64(chunkSize) - 1) / UInt64(chunkSize) }

    /// The chunk's group and its number in it.
    private static func place(_ chunk: UInt64) -> (group: UInt64, index: UInt64) {
        guard chunk >= firstGroupChunks else { return (0, chunk) }
        let later = chunk - firstGroupChunks
        return (1 + later / groupChunks, later % groupChunks)
    }

    /// Offset in bytes of the block of seals that begins a group after the first.
    private static func groupStart(_ group: UInt64) -> UInt64 {
        UInt64(blockSize) * (1 + firstGroupChunks + (group - 1) * (1 + groupChunks))
    }

    /// Offset in bytes of a chunk's seal.
    static func sealOffset(_ chunk: UInt64) -> Int64 {
        let (group, index) = place(chunk)
        let base = group == 0 ? UInt64(slotsSize) : groupStart(group)
        return Int64(base + index * UInt64(sealSize))
    }

    /// Offset in bytes of a chunk.
    static func chunkOffset(_ chunk: UInt64) -> Int64 {
        let (group, index) = place(chunk)
        let base = group == 0 ? 0 : groupStart(group)
        return Int64(base + UInt64(blockSize) + index * UInt64(chunkSize))
    }

    /// How many chunks from this one on lie side by side, with their seals side by side too.
    static func contiguous(from chunk: UInt64) -> UInt64 {
        let (group, index) = place(chunk)
        return (group == 0 ? firstGroupChunks : groupChunks) - index
    }

    /// Bytes of a container with so many chunks and no redo log.
    static func size(chunks: UInt64) -> Int64 {
        guard chunks > 0 else { return Int64(blockSize) }
        return chunkOffset(chunks - 1) + Int64(chunkSize)
    }
}
