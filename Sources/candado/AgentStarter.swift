import FileProtection
import Glibc

/// Starts the agent of a home, so that it lives on when this command ends.
struct AgentStarter {
    /// Where the program tells that it is ready.
    private static let readyDescriptor: Int32 = 3
    /// The most bytes of what it tells.
    private static let mostBytes = 4096

    private let context: CommandContext
    private let socket: FilePath
    /// How long it is waited for, in seconds: for another that is about to begin or end, too.
    private let patience: Double

    /// The program, where it need not be found.
    private let program: FilePath?

    init(_ context: CommandContext, socket: FilePath, patience: Double = 60, program: FilePath? = nil) {
        self.context = context
        self.socket = socket
        self.patience = patience
        self.program = program
    }

    /// Starts it and returns once it answers on its socket; another one that was faster will do. Returns its number.
    ///
    /// Throws `agentNotReachable` with what it said, or that its program is not there, or that it says nothing.
    func start() throws -> Int32 {
        let system = context.system
        let program = try program ?? findProgram()
        var arguments: [[UInt8]] = [Array("--ready-fd".utf8), Array(String(Self.readyDescriptor).utf8)]
        arguments += [Array("--log".utf8), socket.parent.appending(AgentSocket.logName).bytes]
        if let home = context.invocation.value(.home) {
            arguments += [Array("--home".utf8), WorkingDirectory().absolute(home.path).bytes]
        }
        let nowhere = try system.openFile("/dev/null", [.read, .write])
        // A pair of sockets does what a pipe does, and is close-on-exec on both ends from the start.
        let (mine, its) = try LinuxInterprocessCalls.shared.socketPair()
        let ready = Descriptor(mine, system)
        let given = Descriptor(its, system)
        let process = try ChildProcess.start(
            program, arguments: arguments, input: nowhere.number, output: nowhere.number, errors: nowhere.number,
            given: [ChildProcess.GivenDescriptor(source: given.number, target: Self.readyDescriptor)])
        try given.close()
        let words = try answer(ready.number, of: process).split(separator: " ", maxSplits: 1).map(String.init)
        switch words.first {
        case "ready": return process
        case "running": return words.last.flatMap { Int32($0) } ?? 0
        case "error":
            throw ProtectionError(.agentNotReachable, "the agent could not start: \(words.last ?? "")")
        default:
            throw ProtectionError(
                .agentNotReachable, "the agent ended before it was ready; what it wrote is in its log",
                path: socket.parent.appending(AgentSocket.logName))
        }
    }

    /// What the agent says before it closes its end: one line, or nothing when it died.
    private func answer(_ descriptor: Int32, of process: Int32) throws -> String {
        let end = context.clock.secondsSinceBoot + patience
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: Self.mostBytes)
        while text.count < Self.mostBytes {
            guard Interrupts.waitForInput(descriptor, until: { context.clock.secondsSinceBoot >= end }) else {
                try context.checkInterrupt()
                // It would wait on, and every further command with it.
                kill(process, SIGTERM)
                throw ProtectionError(
                    .agentNotReachable, "the agent that was started does not get ready; what it wrote is in its log",
                    path: socket.parent.appending(AgentSocket.logName))
            }
            let count = try buffer.withUnsafeMutableBytes { try context.system.read(descriptor, into: $0) }
            if count == 0 { break }
            text += buffer[..<count]
            if text.last == UInt8(ascii: "\n") { break }
        }
        return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// The program beside this one, so that a build is tried with its own agent; else the first one in `PATH`.
    func findProgram() throws -> FilePath {
        let beside = ProcessFacts.executable(of: getpid()).map { [$0.parent] } ?? []
        guard let program = ProgramSearch.find(RunningAgent.programName, before: beside, context.system) else {
            throw ProtectionError(
                .agentNotReachable, "the program 'candado-agent' is neither beside this one nor in PATH")
        }
        return program
    }
}
