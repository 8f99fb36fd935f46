import Glibc

/// Reading a small file that somebody else may have put in the way: first opened without following a link or waiting,
/// then looked at through the descriptor, and read only when it is what it should be.
public enum SafeFile {
    /// The content.
    ///
    /// Throws `ELOOP` for a symbolic link, `EISDIR` for a directory, `EINVAL` for any other special file, `EFBIG` when
    /// it is longer than `maximumSize` bytes; and with `ownerOnly`, `EPERM` when it belongs to another user (other than
    /// root) and `EACCES` when anyone but the owner has a permission on it.
    public static func read(
        _ path: FilePath, in directory: Int32 = currentDirectory, maximumSize: Int, ownerOnly: Bool,
        _ system: any SystemCalls
    ) throws(SystemError) -> [UInt8] {
        let file = try system.openFile(path, in: directory, [.read, .noFollow, .nonBlocking])
        let size = try check(file.number, path, maximumSize: maximumSize, ownerOnly: ownerOnly, system)
        // One byte more than it had: a file that grows meanwhile is noticed.
        var bytes = [UInt8](repeating: 0, count: size + 1)
        while true {
            let count = try fill(&bytes, from: file.number, path, system)
            if count < bytes.count {
                bytes.removeLast(bytes.count - count)
                return bytes
            }
            guard count <= maximumSize else { throw SystemError(call: "read", errorNumber: EFBIG, path: path) }
            bytes = [UInt8](repeating: 0, count: min(2 * bytes.count, maximumSize + 1))
        }
    }

    /// The content straight into the caller's buffer, such as secret memory; nothing is copied elsewhere. Returns the
    /// number of bytes. The same checks; `EFBIG` when it does not fit.
    public static func read(
        _ path: FilePath, in directory: Int32 = currentDirectory, into buffer: UnsafeMutableRawBufferPointer,
        ownerOnly: Bool, _ system: any SystemCalls
    ) throws(SystemError) -> Int {
        let file = try system.openFile(path, in: directory, [.read, .noFollow, .nonBlocking])
        _ = try check(file.number, path, maximumSize: buffer.count, ownerOnly: ownerOnly, system)
        let count = try system.readFully(file.number, into: buffer, at: 0)
        if count == buffer.count, try !isAtEnd(file.number, Int64(count), system) {
            throw SystemError(call: "read", errorNumber: EFBIG, path: path)
        }
        return count
    }

    /// Returns the size.
    private static func check(
        _ file: Int32, _ path: FilePath, maximumSize: Int, ownerOnly: Bool, _ system: any SystemCalls
    ) throws(SystemError) -> Int {
        let status = try system.status(file)
        func refuse(_ number: Int32) -> SystemError { SystemError(call: "open", errorNumber: number, path: path) }
        switch status.kind {
        case .regular: break
        case .directory: throw refuse(EISDIR)
        default: throw refuse(EINVAL)
        }
        guard status.size <= Int64(maximumSize) else { throw refuse(EFBIG) }
        if ownerOnly {
            guard status.owner == geteuid() || status.owner == 0 else { throw refuse(EPERM) }
            guard status.permissions & 0o077 == 0 else { throw refuse(EACCES) }
        }
        return Int(status.size)
    }

    private static func fill(
        _ bytes: inout [UInt8], from file: Int32, _ path: FilePath, _ system: any SystemCalls
    ) throws(SystemError) -> Int {
        var result: Result<Int, SystemError> = .success(0)
        bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                result = .success(try system.readFully(file, into: buffer, at: 0))
            } catch {
                result = .failure(error)
            }
        }
        return try result.get()
    }

    private static func isAtEnd(_ file: Int32, _ offset: Int64, _ system: any SystemCalls) throws(SystemError) -> Bool {
        var byte: UInt8 = 0
        return try withUnsafeMutableBytes(of: &byte) { (buffer) throws(SystemError) in
            try system.readFully(file, into: buffer, at: offset) == 0
        }
    }
}
