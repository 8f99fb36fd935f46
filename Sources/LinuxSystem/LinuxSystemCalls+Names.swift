import CLinux
import Glibc

// Status, names and directories.
extension LinuxSystemCalls {
    public func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
        var raw = stat()
        try checked("fstat", repeatedWhileInterrupted { fstat(descriptor, &raw) })
        return FileStatus(raw)
    }

    public func status(
        of path: FilePath, in directory: Int32, followLinks: Bool
    ) throws(SystemError) -> FileStatus {
        var raw = stat()
        let flags = followLinks ? 0 : AT_SYMLINK_NOFOLLOW
        let result = path.withCString { name in
            repeatedWhileInterrupted { fstatat(directory, name, &raw, flags) }
        }
        try checked("fstatat", result, path)
        return FileStatus(raw)
    }

    public func status(ofName file: UnsafePointer<CChar>, in directory: Int32) throws(SystemError) -> FileStatus {
        var raw = stat()
        try checked(
            "fstatat", repeatedWhileInterrupted { fstatat(directory, file, &raw, AT_SYMLINK_NOFOLLOW) })
        return FileStatus(raw)
    }

    public func rename(
        _ from: FilePath, in fromDirectory: Int32, to: FilePath, in toDirectory: Int32, replacing: Replacement
    ) throws(SystemError) {
        let flags: UInt32 =
            switch replacing {
            case .allowed: 0
            case .forbidden: candado_rename_no_replace
            case .required: candado_rename_exchange
            }
        let result = from.withCString { old in
            to.withCString { new in
                repeatedWhileInterrupted { candado_rename(fromDirectory, old, toDirectory, new, flags) }
            }
        }
        try checked("renameat2", result, to)
    }

    public func link(_ descriptor: Int32, to path: FilePath, in directory: Int32) throws(SystemError) {
        let result = path.withCString { name in
            repeatedWhileInterrupted { candado_link_descriptor(descriptor, directory, name) }
        }
        try checked("linkat", result, path)
    }

    public func unlink(_ path: FilePath, in directory: Int32) throws(SystemError) {
        let result = path.withCString { name in repeatedWhileInterrupted { unlinkat(directory, name, 0) } }
        try checked("unlinkat", result, path)
    }

    public func removeDirectory(_ path: FilePath, in directory: Int32) throws(SystemError) {
        let result = path.withCString { name in
            repeatedWhileInterrupted { unlinkat(directory, name, AT_REMOVEDIR) }
        }
        try checked("rmdir", result, path)
    }

    public func makeDirectory(
        _ path: FilePath, in directory: Int32, permissions: UInt32
    ) throws(SystemError) {
        let result = path.withCString { name in repeatedWhileInterrupted { mkdirat(directory, name, permissions) } }
        try checked("mkdirat", result, path)
    }

    public func readDirectory(_ descriptor: Int32) throws(SystemError) -> [DirectoryEntry] {
        // Large enough for some thousands of names, and to keep the number of calls small.
        let size = 128 * 1024
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
        defer { storage.deallocate() }
        while true {
            let result = repeatedWhileInterrupted { candado_read_directory(descriptor, storage.baseAddress, size) }
            let count = try checked("getdents64", result)
            if count == 0 { return [] }
            let entries = DirectoryEntry.parse(UnsafeRawBufferPointer(rebasing: storage[..<count]))
            // A buffer that held only . and .. is not the end.
            if !entries.isEmpty { return entries }
        }
    }

    public func readDirectory(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int {
        try checked(
            "getdents64",
            repeatedWhileInterrupted { candado_read_directory(descriptor, buffer.baseAddress, buffer.count) })
    }

    public func fileSystem(_ descriptor: Int32) throws(SystemError) -> FileSystemStatus {
        var raw = candado_file_system()
        try checked("fstatfs", repeatedWhileInterrupted { candado_file_system_status(descriptor, &raw) })
        return FileSystemStatus(type: raw.type, availableBytes: raw.available_bytes, isReadOnly: raw.read_only != 0)
    }
}

extension FileStatus {
    init(_ raw: stat) {
        let kind: Kind =
            switch raw.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .directory
            case S_IFLNK: .symbolicLink
            default: .special
            }
        self.init(
            device: UInt64(raw.st_dev), inode: UInt64(raw.st_ino), kind: kind, permissions: raw.st_mode & 0o7777,
            owner: raw.st_uid, group: raw.st_gid, linkCount: UInt64(raw.st_nlink), size: Int64(raw.st_size),
            blocks: Int64(raw.st_blocks), accessTime: FileTime(raw.st_atim), modificationTime: FileTime(raw.st_mtim),
            changeTime: FileTime(raw.st_ctim))
    }
}

extension FileTime {
    init(_ raw: timespec) { self.init(seconds: Int64(raw.tv_sec), nanoseconds: Int64(raw.tv_nsec)) }
}

extension DirectoryEntry {
    static func parse(_ buffer: UnsafeRawBufferPointer) -> [DirectoryEntry] {
        var entries: [DirectoryEntry] = []
        entries.reserveCapacity(buffer.count / 32)
        forEachRecord(in: buffer) { name, kind, inode in
            entries.append(DirectoryEntry(name: FilePath(unchecked: Array(name)), kind: kind, inode: inode))
        }
        return entries
    }

    /// Reads the records of `getdents64`: inode (8 bytes), position (8), length of the record (2), kind (1), name and
    /// NUL. `body` gets each name without its NUL, which lies behind it in the buffer; never `.` or `..`.
    public static func forEachRecord(
        in buffer: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, FileStatus.Kind?, UInt64) -> Void
    ) {
        var start = 0
        while start + 19 < buffer.count {
            let length = Int(buffer.loadUnaligned(fromByteOffset: start + 16, as: UInt16.self))
            guard length > 19, start + length <= buffer.count else { break }
            let tail = UnsafeRawBufferPointer(rebasing: buffer[(start + 19)..<(start + length)])
            let name = UnsafeRawBufferPointer(rebasing: tail[..<(tail.firstIndex(of: 0) ?? tail.count)])
            if !isSelfOrParent(name) {
                body(
                    name, kind(ofType: buffer[start + 18]),
                    buffer.loadUnaligned(fromByteOffset: start, as: UInt64.self))
            }
            start += length
        }
    }

    private static func isSelfOrParent(_ name: UnsafeRawBufferPointer) -> Bool {
        let dot = UInt8(ascii: ".")
        return (name.count == 1 && name[0] == dot) || (name.count == 2 && name[0] == dot && name[1] == dot)
    }

    /// `d_type`. 0 means that the file system does not tell.
    private static func kind(ofType type: UInt8) -> FileStatus.Kind? {
        switch type {
        case 0: nil
        case 4: .directory
        case 8: .regular
        case 10: .symbolicLink
        default: .special
        }
    }
}
