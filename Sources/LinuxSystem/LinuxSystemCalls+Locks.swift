import CLinux
import Glibc

// Range locks and leases.
extension LinuxSystemCalls {
    public func lock(
        _ descriptor: Int32, _ lock: RangeLock, start: Int64, count: Int64, wait: Bool
    ) throws(SystemError) -> Bool {
        let type: Int32 =
            switch lock {
            case .shared: Int32(F_RDLCK)
            case .exclusive: Int32(F_WRLCK)
            case .none: Int32(F_UNLCK)
            }
        let result = repeatedWhileInterrupted { candado_lock_range(descriptor, type, start, count, wait ? 1 : 0) }
        if !wait, result == -Int(EAGAIN) || result == -Int(EACCES) { return false }
        try checked("fcntl", result)
        return true
    }

    public func isLocked(_ descriptor: Int32, start: Int64, count: Int64) throws(SystemError) -> Bool {
        try checked("fcntl", repeatedWhileInterrupted { candado_range_is_locked(descriptor, start, count) }) == 1
    }

    public func takeReadLease(_ descriptor: Int32) throws(SystemError) {
        try checked("fcntl", repeatedWhileInterrupted { candado_take_read_lease(descriptor) })
    }

    public func leaseState(_ descriptor: Int32) throws(SystemError) -> LeaseState {
        let type = try checked("fcntl", repeatedWhileInterrupted { candado_lease(descriptor) })
        return type == Int(F_RDLCK) ? .held : .broken
    }

    public func dropLease(_ descriptor: Int32) throws(SystemError) {
        try checked("fcntl", repeatedWhileInterrupted { candado_drop_lease(descriptor) })
    }
}
