import Foundation
import PlainFoundation

/// The calls of `FileHandle` that say when they fail. On every handle but that of a protected file they are Foundation's.
extension FileHandle {
    private var protected: ProtectedFileHandle? { self as? ProtectedFileHandle }

    /// Reads from the position to the end; nil at the end. Throws `CocoaError`.
    public func readToEnd() throws -> Data? {
        if let protected { return try protected.content(upTo: .max) }
        return try PlainFoundation.readToEnd(self)
    }

    /// Reads up to so many bytes from the position on; nil at the end. Throws `CocoaError`.
    public func read(upToCount count: Int) throws -> Data? {
        if let protected { return try protected.content(upTo: count) }
        return try PlainFoundation.read(upToCount: count, self)
    }

    /// Writes all bytes at the position. Throws `CocoaError`.
    public func write<T: DataProtocol>(contentsOf data: T) throws {
        if let protected { return try protected.writeContent(data) }
        try PlainFoundation.write(contentsOf: data, self)
    }

    /// The position in bytes. Throws `CocoaError` when the handle is closed.
    public func offset() throws -> UInt64 {
        if let protected { return try protected.currentOffset() }
        return try PlainFoundation.offset(self)
    }

    /// Moves to the end and returns the content's length in bytes, in every lock state.
    @discardableResult
    public func seekToEnd() throws -> UInt64 {
        if let protected { return try protected.moveToEnd() }
        return try PlainFoundation.seekToEnd(self)
    }

    /// Moves to an offset in bytes, which may lie behind the end, in every lock state.
    public func seek(toOffset offset: UInt64) throws {
        if let protected { return try protected.moveTo(offset) }
        try PlainFoundation.seek(toOffset: offset, self)
    }

    /// Makes the content so many bytes long and moves there; what is added reads as zeros. Throws `CocoaError`.
    public func truncate(atOffset offset: UInt64) throws {
        if let protected { return try protected.cut(at: offset) }
        try PlainFoundation.truncate(atOffset: offset, self)
    }

    /// Makes everything written durable, in every lock state. Throws `CocoaError`.
    public func synchronize() throws {
        if let protected { return try protected.makeDurable() }
        try PlainFoundation.synchronize(self)
    }

    /// Closes the handle, in every lock state; what was written to a protected file is durable then. Closing twice is no
    /// error. Throws `CocoaError`.
    public func close() throws {
        if let protected { return try protected.closeContent() }
        try PlainFoundation.close(self)
    }
}
