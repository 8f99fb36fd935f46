import LinuxSystem

/// The calls of ``SystemCalls``, each under the name that its manual page and ``SystemError/call`` give it.
public enum SystemOperation: String, Sendable, Hashable, CaseIterable {
    case open = "openat"
    case close
    case duplicate = "dup"
    case read
    case write
    case readAt = "pread"
    case writeAt = "pwrite"
    case truncate = "ftruncate"
    case allocate = "fallocate"
    case synchronize = "fsync"
    case synchronizeData = "fdatasync"
    case synchronizeFileSystem = "syncfs"
    case status = "fstat"
    case statusOfPath = "fstatat"
    case rename = "renameat2"
    case link = "linkat"
    case unlink = "unlinkat"
    case removeDirectory = "rmdir"
    case makeDirectory = "mkdirat"
    case readDirectory = "getdents64"
    case attribute = "fgetxattr"
    case attributeOfPath = "getxattrat"
    case setAttribute = "fsetxattr"
    case removeAttribute = "fremovexattr"
    case attributeNames = "flistxattr"
    case changeOwner = "fchown"
    case changePermissions = "fchmod"
    case setTimes = "futimens"
    case lock = "fcntl(F_OFD_SETLK)"
    case isLocked = "fcntl(F_OFD_GETLK)"
    case takeReadLease = "fcntl(F_SETLEASE, F_RDLCK)"
    case leaseState = "fcntl(F_GETLEASE)"
    case dropLease = "fcntl(F_SETLEASE, F_UNLCK)"
    case fileSystem = "fstatfs"
    case random = "getrandom"
}

/// One call that is about to be made, or was made: which, and on what. Only the fields that the call has are set.
///
/// Not to be kept: ``bytes`` is the caller's own memory, and may be secret.
public struct SystemCallDescription {
    public let operation: SystemOperation
    /// The open file that it works on. Not the directory in which a path begins: that is ``directory``.
    public let descriptor: Int32?
    /// The path; of a rename or a link, the new one.
    public let path: FilePath?
    /// Where ``path`` begins.
    public let directory: Int32?
    /// The old path of a rename.
    public let source: FilePath?
    /// Where ``source`` begins.
    public let sourceDirectory: Int32?
    /// In bytes: of a positioned read or write, an allocation or a lock.
    public let offset: Int64?
    /// Bytes to read or write, the new length for a truncation, the length for an allocation or a lock.
    public let count: Int64?
    /// What is to be written, or the new value of an attribute. Valid during the call only.
    public let bytes: UnsafeRawBufferPointer?
    /// The name of the extended attribute.
    public let attribute: String?
    public let options: OpenOptions?
    public let permissions: UInt32?
    public let replacing: Replacement?
    public let lock: RangeLock?
    /// Whether a lock may wait.
    public let waits: Bool

    /// The name of the call, as in ``SystemError/call``.
    public var name: String { operation.rawValue }

    init(
        _ operation: SystemOperation, descriptor: Int32? = nil, path: FilePath? = nil, directory: Int32? = nil,
        source: FilePath? = nil, sourceDirectory: Int32? = nil, offset: Int64? = nil, count: Int64? = nil,
        bytes: UnsafeRawBufferPointer? = nil, attribute: String? = nil, options: OpenOptions? = nil,
        permissions: UInt32? = nil, replacing: Replacement? = nil, lock: RangeLock? = nil, waits: Bool = false
    ) {
        self.operation = operation
        self.descriptor = descriptor
        self.path = path
        self.directory = directory
        self.source = source
        self.sourceDirectory = sourceDirectory
        self.offset = offset
        self.count = count
        self.bytes = bytes
        self.attribute = attribute
        self.options = options
        self.permissions = permissions
        self.replacing = replacing
        self.lock = lock
        self.waits = waits
    }

    /// Whether it changes what is on disk. Synchronising is not counted: it changes what would outlive a power cut.
    public var isMutation: Bool {
        switch operation {
        case .open:
            guard let options else { return false }
            return options.contains(.create) || options.contains(.truncate) || options.contains(.unnamed)
        case .write, .writeAt, .truncate, .allocate, .rename, .link, .unlink, .removeDirectory, .makeDirectory,
            .setAttribute, .removeAttribute, .changeOwner, .changePermissions, .setTimes:
            return true
        default: return false
        }
    }

    /// The error that this call would throw for an `errno`.
    public func failure(_ errorNumber: Int32) -> SystemError {
        SystemError(call: name, errorNumber: errorNumber, path: path, attribute: attribute)
    }
}

/// What becomes of a call.
public enum Interception: Sendable, Hashable {
    /// It is made as it is.
    case proceed
    /// A read or write is made with at most so many bytes, and at least one. Other calls proceed as they are.
    case shorten(to: Int)
    /// The call is made, and its effect stays, but its caller is told this `errno`.
    case failAfterwards(errorNumber: Int32)
}
