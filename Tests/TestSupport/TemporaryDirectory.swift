import Glibc
import LinuxSystem

/// A private directory (mode 0700) that is removed, with all in it, when this value goes away.
public final class TemporaryDirectory: Sendable {
    /// Where it is made.
    public enum Place: Sendable {
        /// `$TMPDIR`, else /tmp: usually a disk.
        case disk
        /// /dev/shm where it takes user attributes, else as `disk`: fast.
        case memory
        /// In this directory.
        case inside(FilePath)
    }

    /// Absolute.
    public let path: FilePath
    /// Open for reading for as long as this value lives, for the `*at` calls.
    public let descriptor: Int32
    private let system: any SystemCalls = LinuxSystemCalls.shared

    public init(_ place: Place = .disk) throws {
        let parent: FilePath =
            switch place {
            case .disk: Self.diskPlace
            case .memory: Self.memoryPlace
            case .inside(let directory): directory
            }
        var number: UInt64 = 0
        try withUnsafeMutableBytes(of: &number) { (buffer) throws(SystemError) in
            try LinuxSystemCalls.shared.random(into: buffer)
        }
        guard let name = FilePath("candado-test-" + String(number, radix: 36)) else { throw Errno.impossible }
        path = parent.appending(name)
        try system.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        descriptor = try system.open(path, in: currentDirectory, [.read, .directory], permissions: 0)
    }

    deinit {
        // Through another open directory: a test may have read this one to its end.
        if let fresh = try? system.openFile(path, [.read, .directory]) { try? Self.empty(fresh.number, system) }
        try? system.close(descriptor)
        try? system.removeDirectory(path, in: currentDirectory)
    }

    enum Errno: Error { case impossible }

    private static var diskPlace: FilePath {
        if let text = getenv("TMPDIR"), text[0] != 0, let path = FilePath(String(cString: text)) { return path }
        return "/tmp"
    }

    /// User attributes on tmpfs are newer than Linux 6.1, so they are tried once.
    private static let memoryPlace: FilePath = {
        let system = LinuxSystemCalls.shared
        guard let file = try? system.openFile("/dev/shm", [.read, .write, .unnamed]),
            (try? system.setAttribute("user.candado", of: file.number, to: [1], replacing: .allowed)) != nil
        else { return diskPlace }
        return "/dev/shm"
    }()

    /// The path of a name in it.
    public func appending(_ name: FilePath) -> FilePath { path.appending(name) }

    /// Makes or overwrites a plain file, not atomically.
    public func write(_ bytes: [UInt8], to name: FilePath, permissions: UInt32 = 0o600) throws {
        let file = try system.openFile(
            name, in: descriptor, [.write, .create, .truncate], permissions: permissions)
        try bytes.withUnsafeBytes { try system.writeFully(file.number, $0) }
        try system.changePermissions(file.number, to: permissions)
    }

    /// The whole content of a file.
    public func read(_ name: FilePath) throws -> [UInt8] {
        try SafeFile.read(name, in: descriptor, maximumSize: 1 << 30, ownerOnly: false, system)
    }

    /// The names in it, or in a directory in it, sorted by their bytes.
    public func names(in directory: FilePath = .current) throws -> [String] {
        let opened = try system.openFile(directory, in: descriptor, [.read, .directory])
        return try system.entries(opened.number).map(\.name.description).sorted()
    }

    public func makeDirectory(_ name: FilePath, permissions: UInt32 = 0o700) throws {
        try system.makeDirectory(name, in: descriptor, permissions: permissions)
    }

    /// Removes what is in an open directory. What is mounted there is left alone.
    static func empty(_ directory: Int32, _ system: any SystemCalls) throws {
        let device = try system.status(directory).device
        for entry in try system.entries(directory) {
            let status = try system.status(of: entry.name, in: directory, followLinks: false)
            guard status.kind == .directory else {
                try system.unlink(entry.name, in: directory)
                continue
            }
            guard status.device == device else { continue }
            let inner = try system.openFile(entry.name, in: directory, [.read, .directory, .noFollow])
            try empty(inner.number, system)
            try system.removeDirectory(entry.name, in: directory)
        }
    }
}
