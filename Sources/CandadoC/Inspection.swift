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
