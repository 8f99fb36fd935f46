import Glibc
import LinuxSystem

/// Finds programs.
enum ProgramSearch {
    /// The path of a program: as it is where it has a slash, else in the first of these directories, then in the absolute
    /// directories of PATH. Nil when there is no such program.
    static func find(_ program: FilePath, before: [FilePath] = [], _ system: any SystemCalls) -> FilePath? {
        guard !program.bytes.contains(UInt8(ascii: "/")) else { return isProgram(program, system) ? program : nil }
        // What lies in the current directory is anybody's.
        return (before + directoriesOfPath).lazy.filter(\.isAbsolute).map { $0.appending(program) }
            .first { isProgram($0, system) }
    }

    private static var directoriesOfPath: [FilePath] {
        guard let search = getenv("PATH") else { return [] }
        return FilePath(copying: search).bytes.split(separator: UInt8(ascii: ":")).compactMap {
            FilePath(bytes: Array($0))
        }
    }

    private static func isProgram(_ path: FilePath, _ system: any SystemCalls) -> Bool {
        guard let status = try? system.status(of: path, in: currentDirectory, followLinks: true) else { return false }
        return status.kind == .regular && status.permissions & 0o111 != 0
    }
}
