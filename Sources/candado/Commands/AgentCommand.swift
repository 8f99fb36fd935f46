import FileProtection
import Glibc

/// `candado agent`
enum AgentCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        try AgentPresence.requireWanted(context)
        let home = try Session.home(context)
        _ = try Keybag.claimedIdentifier(in: home, context.system)
        if context.invocation.has(.stop) { return try AgentStop.run(home, context) }
        let starter = AgentStarter(context, socket: try home.agentSocket(context.system))
        if context.invocation.has(.foreground) { try become(try starter.findProgram(), context) }
        let process: Int32
        if let status = try AgentPresence.status(of: home, context) {
            process = Int32(clamping: status.process)
        } else {
            process = try starter.start()
        }
        if context.console.isJSON {
            context.console.line(
                JSON.document([.init("agent", .object([.init("pid", .integer(Int64(process)))]))]))
        } else if !context.console.isQuiet {
            context.console.line("the agent runs as process \(process)")
        }
        return .done
    }

    /// Goes on as the agent in this very process, so that whoever supervises this one supervises the agent.
    private static func become(_ program: FilePath, _ context: CommandContext) throws {
        var arguments: [[UInt8]] = []
        if let home = context.invocation.value(.home) { arguments += [Array("--home".utf8), home.path.bytes] }
        throw ChildProcess.replaceThisProcess(by: program, arguments: arguments)
    }
}
