import Glibc

/// The `errno` values that code above this floor decides by, under names that say what they mean.
public enum ErrorNumber {
    public static let notPermitted = EPERM
    public static let noEntry = ENOENT
    public static let accessDenied = EACCES
    public static let exists = EEXIST
    public static let notDirectory = ENOTDIR
    public static let isDirectory = EISDIR
    public static let invalidArgument = EINVAL
    public static let fileTooLarge = EFBIG
    public static let noSpace = ENOSPC
    public static let quota = EDQUOT
    public static let readOnlyFileSystem = EROFS
    public static let tooManyLinks = ELOOP
    public static let notSupported = EOPNOTSUPP
    public static let tooManyOpenFiles = EMFILE
    public static let wouldBlock = EAGAIN
    public static let badDescriptor = EBADF
    public static let inputOutput = EIO
    public static let rangeTooLarge = E2BIG
    public static let tooBig = ERANGE
    public static let noDevice = ENXIO
    public static let badMessage = EBADMSG
    public static let requiredKeyNotAvailable = ENOKEY
    public static let keyRejected = EKEYREJECTED
    public static let noAttribute = ENODATA
    public static let cancelled = ECANCELED
    public static let noMemory = ENOMEM
    public static let busy = EBUSY
    public static let connectionRefused = ECONNREFUSED
    public static let connectionReset = ECONNRESET
    public static let brokenPipe = EPIPE
    public static let interrupted = EINTR
    public static let noSystemCall = ENOSYS
    public static let nameTooLong = ENAMETOOLONG
    public static let messageTooLong = EMSGSIZE
    public static let timedOut = ETIMEDOUT
    public static let addressInUse = EADDRINUSE
    /// What range locks fail with where they do not work.
    public static let withoutLocks: Set<Int32> = [ENOLCK, EINVAL, EOPNOTSUPP, ENOSYS]
    /// What opening fails with when this process, or the system, has too many files open.
    public static let outOfDescriptors: Set<Int32> = [EMFILE, ENFILE]
}
