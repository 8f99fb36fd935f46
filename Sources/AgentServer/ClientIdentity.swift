import LinuxSystem

/// Who is at the other end of a connection, as the kernel knew when it connected.
struct ClientIdentity {
    let process: Int32
    /// The path of its executable; where that cannot be read, its short name, or nothing.
    let executable: FilePath

    /// The file that it executed then; nil where it cannot be looked at.
    let mark: FileMark?

    init(process: Int32, executable: FilePath, mark: FileMark? = nil) {
        self.mark = mark
        self.process = process
        self.executable = executable
    }

    /// Looks at a process that has just connected. The path of a program that hides its memory cannot be read, but its
    /// name can.
    init(of process: Int32, _ system: any SystemCalls) {
        self.init(
            process: process,
            executable: ProcessFacts.executable(of: process) ?? ProcessFacts.name(of: process, system) ?? "",
            mark: process > 0 ? FileMark(SeenExecutable.link(process), system) : nil)
    }

    /// For lines of the log and for people: the process and, quoted, its executable.
    var name: String { executable.bytes.isEmpty ? "process \(process)" : "process \(process) (\(executable.quoted))" }
}
