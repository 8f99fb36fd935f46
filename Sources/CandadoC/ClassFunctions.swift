// The names are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

@c @implementation
public func candado_class_name(_ protectionClass: Int32) -> UnsafePointer<CChar>? {
    guard let name = ClassFunctions.name(protectionClass) else {
        _ = candado_library_result(ClassFunctions.unknownNumber(protectionClass))
        return nil
    }
    return name
}

@c @implementation
public func candado_class_named(_ name: UnsafePointer<CChar>?) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(ClassFunctions.number(name)))
}

@c @implementation
public func candado_class_of_path(_ path: UnsafePointer<CChar>?, _ flags: UInt32) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(ClassFunctions.ofPath(path, flags)))
}

@c @implementation
public func candado_class_of_descriptor(_ descriptor: Int32) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(ClassFunctions.ofDescriptor(descriptor)))
}

private enum ClassFunctions {
    /// A text that is never freed.
    private struct Name: @unchecked Sendable { let start: UnsafePointer<CChar>? }

    private static let names = ProtectionClass.allCases.map { Name(start: UnsafePointer(strdup($0.name))) }

    @inline(never)
    static func name(_ number: Int32) -> UnsafePointer<CChar>? {
        guard let protectionClass = try? Arguments.protectionClass(number),
            let index = ProtectionClass.allCases.firstIndex(of: protectionClass)
        else { return nil }
        return names[index].start
    }

    @inline(never)
    static func unknownNumber(_ number: Int32) -> Int64 {
        outcome { () throws(CallFailure) in Int64(try Arguments.protectionClass(number).rawValue) }
    }

    @inline(never)
    static func number(_ name: UnsafePointer<CChar>?) -> Int64 {
        outcome { () throws(CallFailure) in
            guard let name else { throw .argument(EFAULT, "the name is NULL") }
            guard let text = FilePath(copying: name).text, let found = ProtectionClass(name: text) else {
                throw .argument(EINVAL, "there is no protection class of this name")
            }
            return Int64(found.rawValue)
        }
    }

    @inline(never)
    static func ofPath(_ path: UnsafePointer<CChar>?, _ flags: UInt32) -> Int64 {
        outcome { () throws(CallFailure) in Int64(try Inspection.ofPath(path, flags).protectionClass?.rawValue ?? 0) }
    }

    @inline(never)
    static func ofDescriptor(_ descriptor: Int32) -> Int64 {
        outcome { () throws(CallFailure) in
            Int64(try Inspection.ofDescriptor(descriptor).protectionClass?.rawValue ?? 0)
        }
    }
}
