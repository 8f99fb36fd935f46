import FileProtection
import Glibc

/// `candado agent`
enum AgentCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        try AgentConnection.requireWanted(context)
        let home = try Session.home(context)
        _ = try Keybag.claimedIdentifier(in: home, context.system)
        let socket = try home.agentSocket(context.system)
        if context.invocation.has(.stop) { return try stop(socket, context) }
        let starter = AgentStarter(context, socket: socket)
        if context.invocation.has(.foreground) { try become(try starter.findProgram(), context) }
        let process: Int32
        do throws(ProtectionError) {
            process = Int32(clamping: try AgentClient.status(at: socket).process)
        } catch {
            guard AgentConnection.isAbsence(error) else { throw error }
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

    /// Ending what does not run is done already.
    private static func stop(_ socket: FilePath, _ context: CommandContext) throws -> ExitStatus {
        do throws(ProtectionError) {
            try AgentClient.stop(at: socket)
        } catch {
            guard AgentConnection.isAbsence(error) else { throw error }
            if !context.console.isJSON, !context.console.isQuiet { context.console.line("no agent runs") }
            return .done
        }
        if !context.console.isJSON, !context.console.isQuiet { context.console.line("the agent has locked and ended") }
        return .done
    }

    /// Goes on as the agent in this very process, so that whoever supervises this one supervises the agent.
    private static func become(_ program: FilePath, _ context: CommandContext) throws {
        var arguments: [[UInt8]] = []
        if let home = context.invocation.value(.home) { arguments += [Array("--home".utf8), home.path.bytes] }
        throw ChildProcess.replaceThisProcess(by: program, arguments: arguments)
    }
}
