import CLinux
import Glibc

/// The kernel's own calls. Has no state but what the kernel was found to support; thread-safe.
public final class LinuxSystemCalls: SystemCalls {
    /// The one that programs use.
    public static let shared = LinuxSystemCalls()

    /// Whether attributes are read by `getxattrat` (Linux 6.13), which needs no path to be put together.
    let hasAttributeAt: Bool

    /// `usesNewCalls` false leaves aside what Linux 6.1 does not have, so that tests run that branch on a newer kernel.
    init(usesNewCalls: Bool = true) {
        hasAttributeAt = usesNewCalls && candado_has_attribute_at() == 1
    }

    public func open(
        _ path: FilePath, in directory: Int32, _ options: OpenOptions, permissions: UInt32
    ) throws(SystemError) -> Int32 {
        let flags = options.flags
        let result = path.withCString { name in
            repeatedWhileInterrupted { Glibc.openat(directory, name, flags, permissions) }
        }
        return Int32(try checked("openat", result, path))
    }

    /// Not repeated when interrupted: Linux has released the descriptor by then, and another thread may own its number.
    public func close(_ descriptor: Int32) throws(SystemError) {
        if Glibc.close(descriptor) == -1 {
            let number = errno
            if number != EINTR { throw SystemError(call: "close", errorNumber: number) }
        }
    }

    public func duplicate(_ descriptor: Int32) throws(SystemError) -> Int32 {
        Int32(try checked("fcntl", repeatedWhileInterrupted { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }))
    }

    public func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try checked("read", repeatedWhileInterrupted { Glibc.read(descriptor, buffer.baseAddress, buffer.count) })
    }

    public func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) throws(SystemError) -> Int {
        try checked("write", repeatedWhileInterrupted { Glibc.write(descriptor, buffer.baseAddress, buffer.count) })
    }

    public func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try checked(
            "pread",
            repeatedWhileInterrupted { pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset)) })
    }

    public func write(
        _ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try checked(
            "pwrite",
            repeatedWhileInterrupted { pwrite(descriptor, buffer.baseAddress, buffer.count, off_t(offset)) })
    }

    public func truncate(_ descriptor: Int32, to length: Int64) throws(SystemError) {
        try checked("ftruncate", repeatedWhileInterrupted { ftruncate(descriptor, off_t(length)) })
    }

    public func allocate(_ descriptor: Int32, offset: Int64, length: Int64) throws(SystemError) {
        try checked("fallocate", repeatedWhileInterrupted { candado_allocate(descriptor, offset, length) })
    }

    public func synchronize(_ descriptor: Int32, dataOnly: Bool) throws(SystemError) {
        if dataOnly {
            try checked("fdatasync", repeatedWhileInterrupted { fdatasync(descriptor) })
        } else {
            try checked("fsync", repeatedWhileInterrupted { fsync(descriptor) })
        }
    }

    public func synchronizeFileSystem(_ descriptor: Int32) throws(SystemError) {
        try checked("syncfs", repeatedWhileInterrupted { candado_synchronize_file_system(descriptor) })
    }

    public func changeOwner(_ descriptor: Int32, owner: UInt32, group: UInt32) throws(SystemError) {
        try checked("fchown", repeatedWhileInterrupted { fchown(descriptor, owner, group) })
    }

    public func changePermissions(_ descriptor: Int32, to permissions: UInt32) throws(SystemError) {
        try checked("fchmod", repeatedWhileInterrupted { fchmod(descriptor, permissions) })
    }

    public func setTimes(_ descriptor: Int32, access: FileTime, modification: FileTime) throws(SystemError) {
        let result = withUnsafeTemporaryAllocation(of: timespec.self, capacity: 2) { times in
            times[0] = timespec(tv_sec: Int(access.seconds), tv_nsec: Int(access.nanoseconds))
            times[1] = timespec(tv_sec: Int(modification.seconds), tv_nsec: Int(modification.nanoseconds))
            return repeatedWhileInterrupted { futimens(descriptor, times.baseAddress) }
        }
        try checked("futimens", result)
    }

    public func random(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            done += try checked("getrandom", repeatedWhileInterrupted { getrandom(rest.baseAddress, rest.count, 0) })
        }
    }
}

extension OpenOptions {
    /// The flags of `open`.
    var flags: Int32 {
        var flags = O_CLOEXEC | O_NOCTTY
        switch (contains(.read), contains(.write)) {
        case (true, true): flags |= O_RDWR
        case (false, true): flags |= O_WRONLY
        default: flags |= O_RDONLY
        }
        if contains(.create) { flags |= O_CREAT }
        if contains(.exclusive) { flags |= O_EXCL }
        if contains(.truncate) { flags |= O_TRUNC }
        if contains(.noFollow) { flags |= O_NOFOLLOW }
        if contains(.directory) { flags |= O_DIRECTORY }
        if contains(.unnamed) { flags |= candado_open_unnamed }
        if contains(.nonBlocking) { flags |= O_NONBLOCK }
        if contains(.append) { flags |= O_APPEND }
        if contains(.pathOnly) { flags |= candado_open_path_only }
        return flags
    }
}
