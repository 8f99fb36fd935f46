import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

/// What can be told of a file without any key, by path or by descriptor.
enum Inspection {
    static func ofPath(_ text: UnsafePointer<CChar>?, _ flags: UInt32) throws(CallFailure) -> FileInspection {
        let path = try Arguments.path(text)
        try Arguments.flags(flags, allowed: CANDADO_FOLLOW)
        guard flags & CANDADO_FOLLOW != 0 else {
            let inspection = try protecting { () throws(ProtectionError) in try FileInspection.inspect(path) }
            if inspection.problem == .unsupported { try requireNoLink(path) }
            return try checked(inspection, path)
        }
        let file = try open(path, follow: true)
        return try ofOpenFile(file.number, path)
    }

    static func ofDescriptor(_ descriptor: Int32) throws(CallFailure) -> FileInspection {
        // A negative one would mean the current directory to some calls.
        guard descriptor >= 0 else { throw .argument(EBADF, "this is no open descriptor") }
        return try ofOpenFile(descriptor, nil)
    }

    private static func ofOpenFile(_ descriptor: Int32, _ path: FilePath?) throws(CallFailure) -> FileInspection {
        let calls = OpenFileCalls(descriptor)
        let inspection = try protecting { () throws(ProtectionError) in
            do throws(ProtectionError) {
                return try FileInspection.inspect(OpenFileCalls.name, calls)
            } catch { throw error.relocated(to: path) }
        }
        return try checked(inspection, path)
    }

    /// Throws what is the matter with the file.
    private static func checked(_ inspection: FileInspection, _ path: FilePath?) throws(CallFailure) -> FileInspection {
        guard let problem = inspection.problem else { return inspection }
        throw CallFailure(ProtectionError(problem, inspection.message ?? "the file cannot be read", path: path))
    }

    /// Opens a file or directory for reading; nothing else, which to open could do something.
    static func open(_ path: FilePath, follow: Bool) throws(CallFailure) -> Descriptor {
        let system = LinuxSystemCalls.shared
        let status = try calling(at: path, follows: follow) { () throws(SystemError) in
            try system.status(of: path, in: currentDirectory, followLinks: follow)
        }
        try require(status.kind, path)
        return try calling(at: path, follows: follow) { () throws(SystemError) in
            try system.openFile(path, follow ? [.read, .nonBlocking] : [.read, .nonBlocking, .noFollow])
        }
    }

    /// The keys for a protected file, or with `orDirectory` for a directory. When there are none, what is wrong with the file
    /// itself comes first: a file that is missing or plain is that without an agent too.
    static func protection(for path: FilePath, orDirectory: Bool = false) throws(CallFailure) -> FileProtection {
        try Library.check()
        do throws(CallFailure) {
            return try Library.protection()
        } catch {
            try requireProtected(path, orDirectory: orDirectory)
            throw error
        }
    }

    private static func requireProtected(_ path: FilePath, orDirectory: Bool) throws(CallFailure) {
        let inspection = try protecting { () throws(ProtectionError) in try FileInspection.inspect(path) }
        if inspection.problem == .unsupported { try requireNoLink(path) }
        switch try checked(inspection, path).state {
        case .plain: throw CallFailure(ProtectionError(.notProtected, "the file is not protected", path: path))
        case .directory where !orDirectory:
            throw CallFailure(ProtectionError(.unsupported, "this is a directory", path: path, reason: .directory))
        default: return
        }
    }

    /// Throws when the name is taken: it is so in every lock state, and without an agent.
    static func requireFree(_ path: FilePath) throws(CallFailure) {
        // What else may be wrong with it is told by the call that makes the file.
        let status = try? LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
        guard status == nil else {
            throw CallFailure(ProtectionError(.alreadyExists, "the file exists already", path: path))
        }
    }

    /// Throws for a symbolic link, which an inspection takes for any other file that is none of its kinds.
    private static func requireNoLink(_ path: FilePath) throws(CallFailure) {
        let status = try calling(at: path) { () throws(SystemError) in
            try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
        }
        if status.kind == .symbolicLink { try require(.symbolicLink, path) }
    }

    /// Throws for what is neither a regular file nor a directory.
    static func require(_ kind: FileStatus.Kind, _ path: FilePath?) throws(CallFailure) {
        switch kind {
        case .regular, .directory: return
        case .symbolicLink:
            throw CallFailure(
                ProtectionError(
                    .unsupported, "this is a symbolic link, which is not followed", path: path, reason: .symbolicLink))
        default:
            throw CallFailure(
                ProtectionError(
                    .unsupported, "neither a regular file nor a directory", path: path, reason: .notRegular))
        }
    }
}
