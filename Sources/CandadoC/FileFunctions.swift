// The names are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

// Each function is two halves: the outer one holds no object, so that nothing is let go of after errno is set.

@c @implementation
public func candado_open(
    _ path: UnsafePointer<CChar>?, _ access: Int32, _ protectionClass: Int32
) -> candado_file {
    candado_library_result(FileFunctions.open(path, access, protectionClass))
}

@c @implementation
public func candado_close(_ file: candado_file) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(FileFunctions.close(file)))
}

@c @implementation
public func candado_pread(
    _ file: candado_file, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ offset: Int64
) -> Int {
    Int(candado_library_result(FileFunctions.read(file, buffer, size, offset)))
}

@c @implementation
public func candado_pwrite(
    _ file: candado_file, _ bytes: UnsafeRawPointer?, _ size: Int, _ offset: Int64
) -> Int {
    Int(candado_library_result(FileFunctions.write(file, bytes, size, offset)))
}

@c @implementation
public func candado_append(_ file: candado_file, _ bytes: UnsafeRawPointer?, _ size: Int) -> Int64 {
    candado_library_result(FileFunctions.append(file, bytes, size))
}

@c @implementation
public func candado_length(_ file: candado_file) -> Int64 {
    candado_library_result(FileFunctions.length(file))
}

@c @implementation
public func candado_truncate(_ file: candado_file, _ length: Int64) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(FileFunctions.truncate(file, length)))
}

@c @implementation
public func candado_fsync(_ file: candado_file) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(FileFunctions.synchronize(file)))
}

@c @implementation
public func candado_class_of_file(_ file: candado_file) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(FileFunctions.protectionClass(file)))
}

/// The inner halves: a result, or a negative `errno`.
private enum FileFunctions {
    @inline(never)
    static func open(_ path: UnsafePointer<CChar>?, _ access: Int32, _ number: Int32) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            let path = try Arguments.path(path)
            let protectionClass = try Arguments.optionalClass(number)
            let wanted = try self.access(access, protectionClass)
            let protection = try keys(for: path, wanted)
            let file = try protecting { () throws(ProtectionError) in try protection.open(path, for: wanted) }
            guard let handle = Library.files.insert(file) else {
                throw .system(EMFILE, "this process has too many handles open")
            }
            return handle
        }
    }

    private static func keys(
        for path: FilePath, _ access: ProtectedFileSystem.Access
    ) throws(CallFailure) -> FileProtection {
        guard case .creating = access else { return try Inspection.protection(for: path) }
        try Inspection.requireFree(path)
        return try Library.protection()
    }

    private static func access(
        _ access: Int32, _ protectionClass: ProtectionClass?
    ) throws(CallFailure) -> ProtectedFileSystem.Access {
        switch UInt32(bitPattern: access) {
        case CANDADO_CREATE.rawValue: return .creating(protectionClass)
        case CANDADO_READ.rawValue, CANDADO_UPDATE.rawValue:
            guard protectionClass == nil else {
                throw .argument(EINVAL, "a file that exists has its class: open it with CANDADO_CLASS_DEFAULT")
            }
            return access == Int32(bitPattern: CANDADO_READ.rawValue) ? .reading : .updating
        default: throw .argument(EINVAL, "there is no access of number \(access)")
        }
    }

    @inline(never)
    static func close(_ handle: candado_file) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            guard let (file, use) = Library.files.close(handle) else { throw .closedHandle }
            defer { Library.files.end(use) }
            let closed = file.takeUnretainedValue()
            try protecting { () throws(ProtectionError) in try closed.close() }
            return 0
        }
    }

    @inline(never)
    static func read(
        _ handle: candado_file, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ offset: Int64
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                let buffer = try Arguments.buffer(buffer, size)
                let offset = try Arguments.offset(offset)
                return try protecting { () throws(ProtectionError) in Int64(try file.read(into: buffer, at: offset)) }
            }
        }
    }

    @inline(never)
    static func write(_ handle: candado_file, _ bytes: UnsafeRawPointer?, _ size: Int, _ offset: Int64) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                let bytes = try Arguments.bytes(bytes, size)
                let offset = try Arguments.offset(offset)
                try protecting { () throws(ProtectionError) in try file.write(bytes, at: offset) }
                return Int64(bytes.count)
            }
        }
    }

    @inline(never)
    static func append(_ handle: candado_file, _ bytes: UnsafeRawPointer?, _ size: Int) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                let bytes = try Arguments.bytes(bytes, size)
                return try protecting { () throws(ProtectionError) in Int64(clamping: try file.append(bytes)) }
            }
        }
    }

    @inline(never)
    static func length(_ handle: candado_file) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                return try protecting { () throws(ProtectionError) in Int64(clamping: try file.length) }
            }
        }
    }

    @inline(never)
    static func truncate(_ handle: candado_file, _ length: Int64) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                let length = try Arguments.offset(length)
                try protecting { () throws(ProtectionError) in try file.truncate(to: length) }
                return 0
            }
        }
    }

    @inline(never)
    static func synchronize(_ handle: candado_file) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                try protecting { () throws(ProtectionError) in try file.synchronize() }
                return 0
            }
        }
    }

    @inline(never)
    static func protectionClass(_ handle: candado_file) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withFile(handle) { (file) throws(CallFailure) in
                return try protecting { () throws(ProtectionError) in Int64(try file.protectionClass.rawValue) }
            }
        }
    }
}
