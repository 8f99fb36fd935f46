import CLinux
import Glibc

// Extended attributes.
extension LinuxSystemCalls {
    public func attribute(_ name: String, of descriptor: Int32) throws(SystemError) -> [UInt8]? {
        try Self.value(name, nil) { (text, buffer) in
            fgetxattr(descriptor, text, buffer.baseAddress, buffer.count)
        }
    }

    public func attribute(
        _ name: String, of descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        let result = name.withCString { text in
            repeatedWhileInterrupted { fgetxattr(descriptor, text, buffer.baseAddress, buffer.count) }
        }
        return try Self.found("fgetxattr", result, nil, name)
    }

    public func attribute(
        _ name: String, of path: FilePath, in directory: Int32
    ) throws(SystemError) -> [UInt8]? {
        try Self.value(name, path) { (text, buffer) in
            path.withCString { self.rawAttribute(text, $0, directory, buffer) }
        }
    }

    public func attribute(
        _ name: String, of path: FilePath, in directory: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        let result = name.withCString { text in
            path.withCString { file in
                repeatedWhileInterrupted { self.rawAttribute(text, file, directory, buffer) }
            }
        }
        return try Self.found("getxattrat", result, path, name)
    }

    public func attribute(
        _ name: String, ofName file: UnsafePointer<CChar>, in directory: Int32,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        let result = name.withCString { text in
            repeatedWhileInterrupted { self.rawAttribute(text, file, directory, buffer) }
        }
        return try Self.found("getxattrat", result, nil, name)
    }

    public func setAttribute(
        _ name: String, of descriptor: Int32, to value: [UInt8], replacing: Replacement
    ) throws(SystemError) {
        let flags: Int32 =
            switch replacing {
            case .allowed: 0
            case .forbidden: Int32(XATTR_CREATE)
            case .required: Int32(XATTR_REPLACE)
            }
        let result = name.withCString { text in
            value.withUnsafeBytes { bytes in
                repeatedWhileInterrupted { fsetxattr(descriptor, text, bytes.baseAddress, bytes.count, flags) }
            }
        }
        try checked("fsetxattr", result, attribute: name)
    }

    public func removeAttribute(_ name: String, of descriptor: Int32) throws(SystemError) {
        let result = name.withCString { text in repeatedWhileInterrupted { fremovexattr(descriptor, text) } }
        if result == -Int(ENODATA) { return }
        try checked("fremovexattr", result, attribute: name)
    }

    public func attributeNames(of descriptor: Int32) throws(SystemError) -> [String] {
        var capacity = 1024
        while true {
            let (count, names) = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
                let count = repeatedWhileInterrupted {
                    flistxattr(descriptor, buffer.bindMemory(to: CChar.self).baseAddress, buffer.count)
                }
                return (count, Self.splitNames(UnsafeRawBufferPointer(rebasing: buffer[..<max(0, count)])))
            }
            if count == -Int(ERANGE) {
                // The list cannot exceed 64 KiB (XATTR_LIST_MAX).
                guard capacity < 1 << 17 else { throw SystemError(call: "flistxattr", errorNumber: ERANGE) }
                capacity *= 8
                continue
            }
            try checked("flistxattr", count)
            guard let names else { throw SystemError(call: "flistxattr", errorNumber: EILSEQ) }
            return names
        }
    }

    /// Nil when a name is not UTF-8.
    private static func splitNames(_ list: UnsafeRawBufferPointer) -> [String]? {
        var names: [String] = []
        for name in list.split(separator: 0) {
            guard let text = String(validating: name, as: UTF8.self) else { return nil }
            names.append(text)
        }
        return names
    }

    private func rawAttribute(
        _ name: UnsafePointer<CChar>, _ path: UnsafePointer<CChar>, _ directory: Int32,
        _ buffer: UnsafeMutableRawBufferPointer
    ) -> Int {
        hasAttributeAt
            ? candado_attribute_at(directory, path, name, buffer.baseAddress, buffer.count)
            : candado_attribute_by_joined_path(directory, path, name, buffer.baseAddress, buffer.count)
    }

    private static func found(
        _ call: StaticString, _ result: Int, _ path: FilePath?, _ name: String
    ) throws(SystemError) -> Int? {
        if result == -Int(ENODATA) { return nil }
        return try checked(call, result, path, attribute: name)
    }

    /// Tries a size that fits nearly every value, then the largest one that Linux has (64 KiB).
    private static func value(
        _ name: String, _ path: FilePath?,
        _ call: (UnsafePointer<CChar>, UnsafeMutableRawBufferPointer) -> Int
    ) throws(SystemError) -> [UInt8]? {
        var capacity = 256
        while true {
            var value: [UInt8]?
            let result = withUnsafeTemporaryAllocation(byteCount: capacity, alignment: 1) { buffer in
                let result = name.withCString { text in repeatedWhileInterrupted { call(text, buffer) } }
                if result >= 0 { value = Array(UnsafeRawBufferPointer(rebasing: buffer[..<result])) }
                return result
            }
            if result == -Int(ERANGE), capacity < 65536 {
                capacity = 65536
                continue
            }
            guard try found(path == nil ? "fgetxattr" : "getxattrat", result, path, name) != nil else { return nil }
            return value
        }
    }
}
