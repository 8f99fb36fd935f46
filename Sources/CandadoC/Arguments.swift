import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

/// What callers hand over, looked at before anything is done with it.
enum Arguments {
    static func path(_ text: UnsafePointer<CChar>?) throws(CallFailure) -> FilePath {
        guard let text else { throw .argument(EFAULT, "the path is NULL") }
        guard text[0] != 0 else { throw .argument(ENOENT, "the path is empty") }
        return FilePath(copying: text)
    }

    /// The path of a file: as for `open(2)`, one that ends with a slash is a directory's. `makes` says that a file is made
    /// where there is none.
    static func filePath(_ text: UnsafePointer<CChar>?, makes: Bool) throws(CallFailure) -> FilePath {
        let path = try Self.path(text)
        guard path.bytes.last == UInt8(ascii: "/") else { return path }
        do throws(SystemError) {
            // What is wrong with a directory is told where it is found.
            _ = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
            return path
        } catch {
            guard makes, error.errorNumber == ENOENT else { throw CallFailure(error, at: path, follows: true) }
            throw CallFailure(
                ProtectionError(.system(EISDIR), "a path that ends with a slash is a directory's", path: path))
        }
    }

    /// A size above `SSIZE_MAX` comes as a negative one.
    @inline(__always)
    static func bytes(_ start: UnsafeRawPointer?, _ size: Int) throws(CallFailure) -> UnsafeRawBufferPointer {
        guard size >= 0 else { throw .argument(EINVAL, "the size is above SSIZE_MAX") }
        guard start != nil || size == 0 else { throw .argument(EFAULT, "the buffer is NULL") }
        return UnsafeRawBufferPointer(start: start, count: size)
    }

    @inline(__always)
    static func buffer(
        _ start: UnsafeMutableRawPointer?, _ size: Int
    ) throws(CallFailure) -> UnsafeMutableRawBufferPointer {
        guard size >= 0 else { throw .argument(EINVAL, "the size is above SSIZE_MAX") }
        guard start != nil || size == 0 else { throw .argument(EFAULT, "the buffer is NULL") }
        return UnsafeMutableRawBufferPointer(start: start, count: size)
    }

    @inline(__always)
    static func offset(_ offset: Int64) throws(CallFailure) -> UInt64 {
        guard offset >= 0 else { throw .argument(EINVAL, "the offset or length is negative") }
        return UInt64(offset)
    }

    /// Nil for `CANDADO_CLASS_DEFAULT`.
    static func optionalClass(_ number: Int32) throws(CallFailure) -> ProtectionClass? {
        number == 0 ? nil : try protectionClass(number)
    }

    static func protectionClass(_ number: Int32) throws(CallFailure) -> ProtectionClass {
        guard let small = UInt8(exactly: number), let protectionClass = ProtectionClass(rawValue: small) else {
            throw .argument(EINVAL, "there is no protection class of number \(number)")
        }
        return protectionClass
    }

    static func flags(_ flags: UInt32, allowed: UInt32 = 0) throws(CallFailure) {
        guard flags & ~allowed == 0 else {
            throw .argument(EINVAL, "a flag is given that this function does not take")
        }
    }

    static func place<Value>(_ pointer: UnsafeMutablePointer<Value>?) throws(CallFailure) -> UnsafeMutablePointer<Value>
    {
        guard let pointer else { throw .argument(EFAULT, "the place for the result is NULL") }
        return pointer
    }
}
