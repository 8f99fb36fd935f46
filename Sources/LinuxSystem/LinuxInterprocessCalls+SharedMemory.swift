import CLinux
import Glibc

// Memory that two processes see.
extension LinuxInterprocessCalls {
    /// The size is rounded up to whole pages. Throws `EINVAL` for a size that is not positive.
    public func makeSharedMemory(
        size: Int, writableByOthers: Bool, locked: Bool
    ) throws(SystemError) -> (descriptor: Int32, mapping: SharedMapping, isLocked: Bool) {
        guard size > 0 else { throw SystemError(call: "memfd_create", errorNumber: EINVAL) }
        var mapping = candado_mapping()
        let result = once {
            candado_make_shared_memory(
                size, writableByOthers ? 1 : 0, locked ? 1 : 0, usesNewCalls ? 1 : 0, &mapping)
        }
        let descriptor = Int32(try checked("memfd_create", result))
        return (descriptor, try shared(mapping), mapping.is_locked != 0)
    }

    /// A mapping for reading, which may hold keys, is locked into memory where the limits allow it.
    public func mapSharedMemory(
        _ descriptor: Int32, size: Int, writable: Bool
    ) throws(SystemError) -> SharedMapping {
        guard size > 0 else { throw SystemError(call: "mmap", errorNumber: EINVAL) }
        var mapping = candado_mapping()
        try checked("mmap", once { candado_map_shared_memory(descriptor, size, writable ? 1 : 0, &mapping) })
        return try shared(mapping)
    }

    public func unmap(_ mapping: SharedMapping) {
        candado_unmap_shared_memory(mapping.address, mapping.size)
    }

    /// What a shim that succeeded has filled in.
    private func shared(_ mapping: candado_mapping) throws(SystemError) -> SharedMapping {
        guard let address = mapping.address else { throw SystemError(call: "mmap", errorNumber: EFAULT) }
        return SharedMapping(address: address, size: mapping.size)
    }
}
