import ProtectionModel

/// What a handle knows of a container between two operations: the header it read last, and the redo log as far as it
/// has been read. It holds no plaintext and no key.
struct ContainerView {
    /// Both header slots as they were read or written last: equal bytes need no new proof.
    var slots: [UInt8]
    /// The slot, 0 or 1, that counts.
    var currentSlot: Int
    var header: ContainerHeader
    /// Bytes of content, the log's whole operations included.
    var length: UInt64 {
        didSet { highestLength = max(highestLength, length) }
    }
    /// The most that ``length`` was since the header was written: a crash that takes the newest operations of the log may
    /// bring it back.
    private var highestLength: UInt64
    /// Chunks whose newest form is in the log, with the offset in bytes of their entry.
    var loggedChunks: [UInt64: UInt64] = [:]
    /// Where the next entry goes, in bytes from the file's start. 0 without a log.
    var logEnd: UInt64 = 0
    /// Entries of whole operations so far.
    var logEntries: UInt32 = 0
    /// The tag of the last of them.
    var lastTag = [UInt8](repeating: 0, count: RedoEntry.tagSize)

    init(slots: [UInt8], currentSlot: Int, header: ContainerHeader) {
        self.slots = slots
        self.currentSlot = currentSlot
        self.header = header
        self.length = header.length
        self.highestLength = header.length
        self.logEnd = header.log?.offset ?? 0
    }

    /// Chunks below this number may be needed after a crash, so that their places are overwritten through the log only.
    var firstFreeChunk: UInt64 {
        ContainerGeometry.chunkCount(length: max(highestLength, header.syncedLength))
    }

    /// Takes in the entries of one whole operation, the first of which lies at `offset`.
    mutating func take(_ operation: [RedoEntry], tag: [UInt8], at offset: UInt64) {
        var position = offset
        for entry in operation {
            if let chunk = entry.chunk { loggedChunks[chunk] = position }
            position += UInt64(entry.size)
            logEntries += 1
        }
        logEnd = position
        lastTag = tag
        if let last = operation.last, last.lengthAfter < length {
            // What lies behind a cut is gone: if the file grows again, an older entry must not shine through.
            let count = ContainerGeometry.chunkCount(length: last.lengthAfter)
            loggedChunks = loggedChunks.filter { $0.key < count }
        }
        if let last = operation.last { length = last.lengthAfter }
    }
}
