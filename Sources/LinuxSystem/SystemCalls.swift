/// How a file is opened. `O_CLOEXEC` and `O_NOCTTY` are always added.
public struct OpenOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let read = OpenOptions(rawValue: 1 << 0)
    public static let write = OpenOptions(rawValue: 1 << 1)
    /// `O_CREAT`
    public static let create = OpenOptions(rawValue: 1 << 2)
    /// `O_EXCL`
    public static let exclusive = OpenOptions(rawValue: 1 << 3)
    /// `O_TRUNC`
    public static let truncate = OpenOptions(rawValue: 1 << 4)
    /// `O_NOFOLLOW`
    public static let noFollow = OpenOptions(rawValue: 1 << 5)
    /// `O_DIRECTORY`
    public static let directory = OpenOptions(rawValue: 1 << 6)
    /// `O_TMPFILE`: the path is the directory, the file has no name yet.
    public static let unnamed = OpenOptions(rawValue: 1 << 7)
    /// `O_NONBLOCK`: opening a pipe or a device by mistake must not hang.
    public static let nonBlocking = OpenOptions(rawValue: 1 << 8)
    /// `O_APPEND`
    public static let append = OpenOptions(rawValue: 1 << 9)
    /// `O_PATH`
    public static let pathOnly = OpenOptions(rawValue: 1 << 10)
}

/// How a name may be replaced by a rename or an attribute by a new value.
public enum Replacement: Hashable, Sendable {
    /// Whether or not it is there.
    case allowed
    /// Only when it is not there (`RENAME_NOREPLACE`, `XATTR_CREATE`).
    case forbidden
    /// Only when it is there (`XATTR_REPLACE`); for a rename, the two names are exchanged (`RENAME_EXCHANGE`).
    case required
}

/// Open-file-description locks (`fcntl` `F_OFD_SETLK`): they belong to the open file, not to the process, so that two
/// handles in one process exclude each other too.
public enum RangeLock: Hashable, Sendable {
    case shared
    case exclusive
    case none
}

/// What became of a read lease (`fcntl` `F_SETLEASE`).
public enum LeaseState: Hashable, Sendable {
    /// Nobody has opened the file for writing since the lease was taken.
    case held
    /// Somebody waits for the lease to go, or it is gone.
    case broken
}

/// One entry of a directory.
public struct DirectoryEntry: Hashable, Sendable {
    /// The name, a single component. Never `.` or `..`.
    public let name: FilePath
    /// The kind, or nil where the file system does not tell it here.
    public let kind: FileStatus.Kind?
    public let inode: UInt64

    public init(name: FilePath, kind: FileStatus.Kind?, inode: UInt64) {
        self.name = name
        self.kind = kind
        self.inode = inode
    }
}

/// Every system call on files that Candado makes. One value of this is handed down from the top, so that tests can fail
/// the Nth call, cut a write short and record what was written.
///
/// Each method is one call, retried only on `EINTR`. `directory` is a descriptor or ``currentDirectory``. Thread-safe.
public protocol SystemCalls: AnyObject, Sendable {
    func open(
        _ path: FilePath, in directory: Int32, _ options: OpenOptions, permissions: UInt32
    ) throws(SystemError) -> Int32
    func close(_ descriptor: Int32) throws(SystemError)
    /// A second descriptor of the same open file description.
    func duplicate(_ descriptor: Int32) throws(SystemError) -> Int32
    /// Returns the bytes read: 0 at the end.
    func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
    func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) throws(SystemError) -> Int
    /// `pread`: offset in bytes; returns the bytes read, 0 at the end.
    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int
    /// `pwrite`: may write fewer bytes than given.
    func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int
    /// `ftruncate`
    func truncate(_ descriptor: Int32, to length: Int64) throws(SystemError)
    /// `fallocate` with mode 0. Throws `EOPNOTSUPP` where it does not work.
    func allocate(_ descriptor: Int32, offset: Int64, length: Int64) throws(SystemError)
    /// `fsync`, or `fdatasync` when only the content and what is needed to read it matter.
    func synchronize(_ descriptor: Int32, dataOnly: Bool) throws(SystemError)
    /// `syncfs`: everything on the file system of the descriptor.
    func synchronizeFileSystem(_ descriptor: Int32) throws(SystemError)
    func status(_ descriptor: Int32) throws(SystemError) -> FileStatus
    func status(of path: FilePath, in directory: Int32, followLinks: Bool) throws(SystemError) -> FileStatus
    func rename(
        _ from: FilePath, in fromDirectory: Int32, to: FilePath, in toDirectory: Int32, replacing: Replacement
    ) throws(SystemError)
    /// Gives a name to an open file that may have none. Fails with `EEXIST` when the name is taken.
    func link(_ descriptor: Int32, to path: FilePath, in directory: Int32) throws(SystemError)
    func unlink(_ path: FilePath, in directory: Int32) throws(SystemError)
    func removeDirectory(_ path: FilePath, in directory: Int32) throws(SystemError)
    func makeDirectory(_ path: FilePath, in directory: Int32, permissions: UInt32) throws(SystemError)
    /// The next entries of an open directory, some thousands at most; empty at the end (`getdents64`).
    func readDirectory(_ descriptor: Int32) throws(SystemError) -> [DirectoryEntry]
    /// The same as the kernel's records in the caller's buffer, for walks over many files: the number of bytes, 0 at the
    /// end. ``DirectoryEntry/forEachRecord(in:_:)`` reads them.
    func readDirectory(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int
    /// The value of an extended attribute, or nil when the file has none of that name.
    func attribute(_ name: String, of descriptor: Int32) throws(SystemError) -> [UInt8]?
    /// The same by path, never through a symbolic link.
    func attribute(_ name: String, of path: FilePath, in directory: Int32) throws(SystemError) -> [UInt8]?
    /// The same into the caller's buffer, for walks over many files: the number of bytes of the value, or nil when the
    /// file has none of that name. Throws `ERANGE` when the buffer is too small; an empty one asks for the length.
    func attribute(
        _ name: String, of path: FilePath, in directory: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int?
    /// The same by a name that lies in memory as a C string, for walks over many files. What it throws names no path.
    func attribute(
        _ name: String, ofName file: UnsafePointer<CChar>, in directory: Int32,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int?
    /// `fstatat` by a C string, never through a symbolic link. What it throws names no path.
    func status(ofName file: UnsafePointer<CChar>, in directory: Int32) throws(SystemError) -> FileStatus
    /// An attribute of an open file, into the caller's buffer.
    func attribute(
        _ name: String, of descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int?
    func setAttribute(
        _ name: String, of descriptor: Int32, to value: [UInt8], replacing: Replacement
    ) throws(SystemError)
    /// Removing what is not there is no error. The descriptor must not be `O_PATH`.
    func removeAttribute(_ name: String, of descriptor: Int32) throws(SystemError)
    /// Throws `EILSEQ` when a name is not UTF-8: to pass over it would be to lose it.
    func attributeNames(of descriptor: Int32) throws(SystemError) -> [String]
    func changeOwner(_ descriptor: Int32, owner: UInt32, group: UInt32) throws(SystemError)
    func changePermissions(_ descriptor: Int32, to permissions: UInt32) throws(SystemError)
    func setTimes(_ descriptor: Int32, access: FileTime, modification: FileTime) throws(SystemError)
    /// Takes or drops an open-file-description lock on bytes of a file. Without `wait` returns false when somebody else
    /// holds it. Throws `ENOLCK`, `EINVAL` or `EOPNOTSUPP` where such locks do not work.
    func lock(
        _ descriptor: Int32, _ lock: RangeLock, start: Int64, count: Int64, wait: Bool
    ) throws(SystemError) -> Bool
    /// Whether another open file description holds a lock of any kind on these bytes now (`F_OFD_GETLK`).
    func isLocked(_ descriptor: Int32, start: Int64, count: Int64) throws(SystemError) -> Bool
    /// Takes a read lease on a file opened for reading only. Throws `EAGAIN` when somebody has it open for writing,
    /// `EACCES`, `EINVAL` or `EOPNOTSUPP` where leases do not work. The breaking signal is turned off.
    func takeReadLease(_ descriptor: Int32) throws(SystemError)
    func leaseState(_ descriptor: Int32) throws(SystemError) -> LeaseState
    func dropLease(_ descriptor: Int32) throws(SystemError)
    /// The magic number of the file system (`statfs` `f_type`) and its free bytes for this user.
    func fileSystem(_ descriptor: Int32) throws(SystemError) -> FileSystemStatus
    /// Random bytes of the kernel's generator (`getrandom`).
    func random(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError)
}

/// What `statfs` tells of a file system.
public struct FileSystemStatus: Hashable, Sendable {
    public var type: Int64
    public var availableBytes: Int64
    public var isReadOnly: Bool

    public init(type: Int64, availableBytes: Int64, isReadOnly: Bool) {
        self.type = type
        self.availableBytes = availableBytes
        self.isReadOnly = isReadOnly
    }
}

/// `AT_FDCWD`: paths begin at the process's current directory.
public let currentDirectory: Int32 = -100
