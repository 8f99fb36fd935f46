import Glibc

extension SystemCalls {
    /// Opens a file and owns the descriptor. `permissions` count only when the file is made.
    public func openFile(
        _ path: FilePath, in directory: Int32 = currentDirectory, _ options: OpenOptions, permissions: UInt32 = 0o600
    ) throws(SystemError) -> Descriptor {
        Descriptor(try open(path, in: directory, options, permissions: permissions), self)
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes: fewer than asked only at the end.
    public func readFully(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = try read(
                descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), at: offset + Int64(done))
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// The same from the descriptor's own position, for pipes and terminals too.
    public func readFully(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int {
        var done = 0
        while done < buffer.count {
            let count = try read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
            if count == 0 { break }
            done += count
        }
        return done
    }

    /// Writes all bytes at an offset.
    public func writeFully(
        _ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int64
    ) throws(SystemError) {
        var done = 0
        while done < buffer.count {
            let count = try write(
                descriptor, UnsafeRawBufferPointer(rebasing: buffer[done...]), at: offset + Int64(done))
            // No file does this; a loop that goes nowhere is worse than an error.
            guard count > 0 else { throw SystemError(call: "pwrite", errorNumber: EIO) }
            done += count
        }
    }

    /// Writes all bytes at the descriptor's own position.
    public func writeFully(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) throws(SystemError) {
        var done = 0
        while done < buffer.count {
            let count = try write(descriptor, UnsafeRawBufferPointer(rebasing: buffer[done...]))
            guard count > 0 else { throw SystemError(call: "write", errorNumber: EIO) }
            done += count
        }
    }

    /// All entries of a directory that was just opened.
    public func entries(_ descriptor: Int32) throws(SystemError) -> [DirectoryEntry] {
        var all: [DirectoryEntry] = []
        while true {
            let some = try readDirectory(descriptor)
            if some.isEmpty { return all }
            all += some
        }
    }

    /// Makes the names in a directory durable: opens it, `fsync`s it, closes it.
    public func synchronizeDirectory(_ path: FilePath, in directory: Int32 = currentDirectory) throws(SystemError) {
        let opened = try openFile(path, in: directory, [.read, .directory])
        try synchronize(opened.number, dataOnly: false)
    }
}
