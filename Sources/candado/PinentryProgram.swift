import Glibc
import LinuxSystem

/// Finds a program that asks for passcodes.
enum PinentryProgram {
    /// The name that distributions give to the one that is chosen.
    static let name: FilePath = "pinentry"

    /// The path of a program: as it is where it has a slash, else in the absolute directories of PATH. Nil when there is
    /// no such program.
    static func find(_ program: FilePath, _ system: any SystemCalls) -> FilePath? {
        guard !program.bytes.contains(UInt8(ascii: "/")) else { return isProgram(program, system) ? program : nil }
        guard let search = getenv("PATH") else { return nil }
        for bytes in FilePath(copying: search).bytes.split(separator: UInt8(ascii: ":")) {
            // What lies in the current directory is anybody's.
            guard let directory = FilePath(bytes: Array(bytes)), directory.isAbsolute else { continue }
            let path = directory.appending(program)
            if isProgram(path, system) { return path }
        }
        return nil
    }

    /// True when there is a screen on which it could ask.
    static var hasDisplay: Bool {
        ["DISPLAY", "WAYLAND_DISPLAY"].contains { (name: String) in getenv(name).map { $0[0] != 0 } ?? false }
    }

    private static func isProgram(_ path: FilePath, _ system: any SystemCalls) -> Bool {
        guard let status = try? system.status(of: path, in: currentDirectory, followLinks: true) else { return false }
        return status.kind == .regular && status.permissions & 0o111 != 0
    }
}
