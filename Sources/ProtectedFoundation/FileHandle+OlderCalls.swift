import FileProtection
import Foundation
import PlainFoundation

/// The older calls of `FileHandle`, which cannot say that they fail. On every handle but that of a protected file they are
/// Foundation's.
///
/// When such a call fails, Foundation ends the process, and on Apple's systems it raises an exception. So it is here, since
/// every other answer would be wrong: empty or short content would be taken for what the file holds, and bytes that were not
/// written would be taken for saved. Whoever works with files of class A while they may be locked uses the calls that throw.
/// Moving, synchronising and closing do not fail because of a lock.
extension FileHandle {
    private var protected: ProtectedFileHandle? { self as? ProtectedFileHandle }

    /// Reads from the position to the end.
    public func readDataToEndOfFile() -> Data {
        guard let protected else { return PlainFoundation.readDataToEndOfFile(self) }
        do {
            return try protected.content(upTo: .max) ?? Data()
        } catch {
            return PlainFoundation.readDataToEndOfFile(self)
        }
    }

    /// Reads up to so many bytes from the position on.
    public func readData(ofLength length: Int) -> Data {
        guard let protected else { return PlainFoundation.readData(ofLength: length, self) }
        do {
            return try protected.content(upTo: length) ?? Data()
        } catch {
            return PlainFoundation.readData(ofLength: length, self)
        }
    }

    /// The next bytes, some at a time; empty at the end.
    public var availableData: Data {
        guard let protected else { return PlainFoundation.availableData(self) }
        do {
            return try protected.content(upTo: 64 * 1024) ?? Data()
        } catch {
            return PlainFoundation.availableData(self)
        }
    }

    /// Writes all bytes at the position.
    public func write(_ data: Data) {
        guard let protected else { return PlainFoundation.write(data, self) }
        do {
            try protected.writeContent(data)
        } catch {
            PlainFoundation.write(data.isEmpty ? Data([0]) : data, self)
        }
    }

    /// The position in bytes.
    public var offsetInFile: UInt64 {
        guard let protected else { return PlainFoundation.offsetInFile(self) }
        do {
            return try protected.currentOffset()
        } catch {
            return PlainFoundation.offsetInFile(self)
        }
    }

    /// Moves to the end and returns the content's length in bytes, in every lock state.
    @discardableResult
    public func seekToEndOfFile() -> UInt64 {
        guard let protected else { return PlainFoundation.seekToEndOfFile(self) }
        do {
            return try protected.moveToEnd()
        } catch {
            return PlainFoundation.seekToEndOfFile(self)
        }
    }

    /// Moves to an offset in bytes, in every lock state.
    public func seek(toFileOffset offset: UInt64) {
        guard let protected else { return PlainFoundation.seek(toFileOffset: offset, self) }
        do {
            try protected.moveTo(offset)
        } catch {
            PlainFoundation.seek(toFileOffset: offset, self)
        }
    }

    /// Makes the content so many bytes long and moves there.
    public func truncateFile(atOffset offset: UInt64) {
        guard let protected else { return PlainFoundation.truncateFile(atOffset: offset, self) }
        do {
            try protected.cut(at: offset)
        } catch {
            PlainFoundation.truncateFile(atOffset: offset, self)
        }
    }

    /// Makes everything written durable, in every lock state.
    public func synchronizeFile() {
        guard let protected else { return PlainFoundation.synchronizeFile(self) }
        do {
            try protected.makeDurable()
        } catch {
            PlainFoundation.synchronizeFile(self)
        }
    }

    /// Closes the handle, in every lock state; what was written to a protected file is durable then.
    public func closeFile() {
        guard let protected else { return PlainFoundation.closeFile(self) }
        do {
            try protected.closeContent()
        } catch {
            // Closing it again would succeed, and hide that what was written may be lost.
            PlainFoundation.synchronizeFile(self)
        }
    }
}
