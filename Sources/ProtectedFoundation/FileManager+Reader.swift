import FileProtection
import Synchronization

/// The content of a file, protected or plain, from its beginning to its end.
final class ContentReader: Sendable {
    private enum Source {
        case protected(ProtectedFile)
        case plain(OpenFile)
    }

    private let source: Source
    private let position = Mutex<UInt64>(0)

    /// Opens the file. Throws as `FileProtection.open` does.
    init(_ item: Item) throws(ProtectionError) {
        if item.isProtected {
            source = .protected(try Keys.protection.open(item.path, for: .reading))
        } else {
            source = .plain(try OpenFile(item.path))
        }
    }

    /// The class of a protected file. Throws `locked` like a read.
    var protectionClass: ProtectionClass? {
        get throws(ProtectionError) {
            guard case .protected(let file) = source else { return nil }
            return try file.protectionClass
        }
    }

    /// Reads the next bytes. Returns how many: fewer than the buffer has only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        try position.withLock { position in
            let count =
                switch source {
                case .protected(let file): try file.read(into: buffer, at: position)
                case .plain(let file): try file.read(into: buffer, at: position)
                }
            position += UInt64(count)
            return count
        }
    }
}

/// A plain file that is open for reading.
private final class OpenFile: Sendable {
    private let descriptor: Descriptor

    init(_ path: FilePath) throws(ProtectionError) {
        descriptor = try Self.open(path)
    }

    private static func open(_ path: FilePath) throws(ProtectionError) -> Descriptor {
        let result: Result<Int32, SystemError> = Result { () throws(SystemError) in
            try LinuxSystemCalls.shared.open(
                path, in: currentDirectory, [.read, .noFollow, .nonBlocking], permissions: 0)
        }
        switch result {
        case .success(let number): return Descriptor(number, LinuxSystemCalls.shared)
        case .failure(let error): throw ProtectionError(error, at: path)
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int {
        try descriptor.system.readFully(descriptor.number, into: buffer, at: Int64(offset))
    }
}
