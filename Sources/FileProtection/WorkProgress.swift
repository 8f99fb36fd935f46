/// How far some work is. A plain value: what shows it is the app's business.
public struct WorkProgress: Sendable, Hashable {
    /// Bytes of content that have been read or written.
    public var completedBytes: UInt64
    /// Bytes of content at the end, as far as they are known: for a tree a sum of what was found before it began, which
    /// other programs may change; nil for a stream, whose end nobody knows.
    public var totalBytes: UInt64?
    /// Files that are done, of a tree.
    public var completedFiles: Int
    /// Files of the tree, found like ``totalBytes``.
    public var totalFiles: Int?

    /// Puts them together.
    public init(completedBytes: UInt64 = 0, totalBytes: UInt64? = nil, completedFiles: Int = 0, totalFiles: Int? = nil)
    {
        self.completedBytes = completedBytes
        self.totalBytes = totalBytes
        self.completedFiles = completedFiles
        self.totalFiles = totalFiles
    }

    /// From 0 to 1, by bytes, else by files; nil when no end is known.
    public var fractionCompleted: Double? {
        if let totalBytes, totalBytes > 0 { return min(1, Double(completedBytes) / Double(totalBytes)) }
        if let totalFiles, totalFiles > 0 { return min(1, Double(completedFiles) / Double(totalFiles)) }
        return totalBytes == nil && totalFiles == nil ? nil : 1
    }

    /// Told of progress: from any thread, one call at a time, never twice the same.
    public typealias Observer = @Sendable (WorkProgress) -> Void
}
