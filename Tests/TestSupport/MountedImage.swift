import Glibc
import LinuxSystem

/// A small file system of its own, for full disks and read-only ones. Unmounted when this value goes away.
public final class MountedImage: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        /// A loop device on a sparse file.
        case ext4
        case tmpfs
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// The root of the file system.
    public let path: FilePath
    private let holder: TemporaryDirectory
    private var target: String { path.description }

    /// Nil when this process can mount, else a sentence why not, for `.enabled(if:_:)`.
    public static let unavailable: String? = {
        guard geteuid() == 0 else { return "mounting needs root" }
        do {
            _ = try MountedImage(.tmpfs, size: 1 << 20)
            _ = try MountedImage(.ext4, size: 8 << 20)
            return nil
        } catch { return "mounting does not work here: \(error)" }
    }()

    /// `size` in bytes; ext4 needs some megabytes for itself. Mounted at `place`, an empty directory, if one is given.
    public init(_ kind: Kind, size: Int, options: [String] = [], at place: FilePath? = nil) throws {
        holder = try TemporaryDirectory()
        try holder.makeDirectory("mounted")
        path = place ?? holder.appending("mounted")
        let target = path.description
        switch kind {
        case .tmpfs:
            let settings = (["size=\(size)"] + options).joined(separator: ",")
            try Self.run("mount", ["-t", "tmpfs", "-o", settings, "none", target])
        case .ext4:
            let image = holder.appending("image")
            let file = try LinuxSystemCalls.shared.openFile(image, [.write, .create, .exclusive])
            try LinuxSystemCalls.shared.truncate(file.number, to: Int64(size))
            try Self.run("mkfs.ext4", ["-q", "-F", "-m", "0", image.description])
            try Self.run("mount", ["-o", (["loop"] + options).joined(separator: ","), image.description, target])
        }
    }

    deinit {
        _ = try? Command.run("umount", ["-l", path.description])
    }

    /// From now on nothing can be written, or it can again.
    public func remount(readOnly: Bool) throws {
        try Self.run("mount", ["-o", readOnly ? "remount,ro" : "remount,rw", target])
    }

    /// Writes a file called `filler` until nothing more fits. Returns its size in bytes; remove it to make room again.
    @discardableResult
    public func fill(leaving bytesFree: Int = 0) throws -> Int {
        let system = LinuxSystemCalls.shared
        let file = try system.openFile(path.appending("filler"), [.write, .create, .truncate])
        let block = [UInt8](repeating: 0x66, count: 64 * 1024)
        var offset: Int64 = 0
        var size = block.count
        while size >= 512 {
            do throws(SystemError) {
                let count = try block.withUnsafeBytes { (bytes) -> Result<Int, SystemError> in
                    do throws(SystemError) {
                        return .success(
                            try system.write(file.number, UnsafeRawBufferPointer(rebasing: bytes[..<size]), at: offset))
                    } catch { return .failure(error) }
                }.get()
                offset += Int64(count)
            } catch {
                guard error.errorNumber == ENOSPC else { throw error }
                size /= 2
            }
        }
        if bytesFree > 0 {
            offset = max(0, offset - Int64(bytesFree))
            try system.truncate(file.number, to: offset)
        }
        try system.synchronize(file.number, dataOnly: false)
        return Int(offset)
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let result = try Command.run(program, arguments)
        guard result.status == 0 else { throw Failure(description: "\(program): \(result.errorText)") }
    }
}
