import FileProtection
import Foundation

/// A file that is open for writing and holds no container. What Foundation writes to its path meets this very file,
/// whatever becomes of the file's name meanwhile.
///
/// While it is open nobody protects the file where it lies: that takes a lease, which writers exclude. A protected file
/// that takes the name is another file.
final class PinnedFile: Sendable {
    private let descriptor: Descriptor

    /// What came of opening a file.
    enum Opening {
        /// Write through it.
        case pinned(PinnedFile)
        /// What is written here has to be protected: it was not, when it was looked at.
        case protected
        /// It cannot be opened, as Foundation's own call will find.
        case refused
    }

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// Takes over a descriptor of a file that nobody else has.
    init(own descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// A path for Foundation's calls, as long as this object lives.
    var path: String { "/proc/self/fd/\(descriptor.number)" }

    /// What it is, as the system tells.
    var status: FileStatus { get throws(SystemError) { try descriptor.system.status(descriptor.number) } }

    func changePermissions(to permissions: UInt32) throws(SystemError) {
        try descriptor.system.changePermissions(descriptor.number, to: permissions)
    }

    /// Opens what Foundation would write to, and makes it when it is not there, without cutting anything off yet.
    static func open(_ item: Item) -> Opening {
        let system = LinuxSystemCalls.shared
        let opened: Result<Int32, SystemError> = Result { () throws(SystemError) in
            // Foundation's own permissions, and its own way of following links.
            try system.open(item.name, in: currentDirectory, [.write, .create], permissions: 0o666)
        }
        guard case .success(let number) = opened else { return .refused }
        let file = PinnedFile(Descriptor(number, system))
        if holdsContainer(number, system) { return .protected }
        // Made here and now, in a directory that may have got a class since it was looked at.
        if item.inspection == nil, item.givenClass != .none { return .protected }
        return .pinned(file)
    }

    /// Whether the bytes of an open file are a container's, or may be. A file that can have no record has none.
    static func holdsContainer(_ number: Int32, _ system: any SystemCalls) -> Bool {
        do throws(SystemError) {
            if try system.attribute(KeyRecord.attributeName, of: number) != nil { return true }
            let status = try system.status(number)
            guard status.kind == .regular, status.size > 0 else { return false }
        } catch {
            return error.errorNumber != ErrorNumber.notSupported
        }
        do throws(ProtectionError) {
            return try holdsHeader(number, system)
        } catch {
            return true
        }
    }

    /// A container without its record has a header still.
    private static func holdsHeader(_ number: Int32, _ system: any SystemCalls) throws(ProtectionError) -> Bool {
        guard let name = FilePath("/proc/self/fd/\(number)") else { return true }
        let reading = try ProtectionError.mapping(at: name) { () throws(SystemError) in
            try system.open(name, in: currentDirectory, [.read, .nonBlocking], permissions: 0)
        }
        let descriptor = Descriptor(reading, system)
        return try FileInspection.contentLength(of: descriptor.number, system) != nil
    }
}
