/// A point of time in whole seconds since 1970 and nanoseconds.
public struct FileTime: Hashable, Sendable, Comparable {
    /// Seconds since 1970-01-01 00:00 UTC.
    public let seconds: Int64
    /// 0 to 999,999,999.
    public let nanoseconds: Int64

    /// Joins the two.
    public init(seconds: Int64, nanoseconds: Int64) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    public static func < (left: FileTime, right: FileTime) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}

/// What `stat` tells of a file.
public struct FileStatus: Hashable, Sendable {
    /// The kinds of file that matter here.
    public enum Kind: Hashable, Sendable {
        case regular
        case directory
        case symbolicLink
        /// Device, socket or pipe.
        case special
    }

    public var device: UInt64
    public var inode: UInt64
    public var kind: Kind
    /// Permission bits, set-id and sticky bits included.
    public var permissions: UInt32
    public var owner: UInt32
    public var group: UInt32
    public var linkCount: UInt64
    /// In bytes.
    public var size: Int64
    /// Disk use in units of 512 bytes.
    public var blocks: Int64
    public var accessTime: FileTime
    public var modificationTime: FileTime
    public var changeTime: FileTime

    public init(
        device: UInt64, inode: UInt64, kind: Kind, permissions: UInt32, owner: UInt32, group: UInt32, linkCount: UInt64,
        size: Int64, blocks: Int64, accessTime: FileTime, modificationTime: FileTime, changeTime: FileTime
    ) {
        self.device = device
        self.inode = inode
        self.kind = kind
        self.permissions = permissions
        self.owner = owner
        self.group = group
        self.linkCount = linkCount
        self.size = size
        self.blocks = blocks
        self.accessTime = accessTime
        self.modificationTime = modificationTime
        self.changeTime = changeTime
    }
}
