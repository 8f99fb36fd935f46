import FileProtection
import Glibc

/// `candado agent --stop`
enum AgentStop {
    /// How long a process is given to end after it was asked to, in seconds.
    private static let patience = 10.0

    static func run(_ home: KeybagHome, _ context: CommandContext) throws -> ExitStatus {
        let report: LockReport?
        do throws(ProtectionError) {
            report = try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
                try AgentClient.stop(at: socket, system: context.system)
            }
        } catch {
            switch AgentTrouble(error) {
            // Ending what does not run is done already.
            case .absent: return say("no agent runs", nil, context.console)
            case .otherVersion: report = nil
            default: throw error
            }
            try terminate(home, context, error)
        }
        guard case .incomplete(let holders)? = report?.outcome else {
            return say("the agent has locked and ended", report, context.console)
        }
        if context.console.isJSON { context.console.line(json(report)) }
        throw CommandFailure(
            .failed, "the agent has ended, but not all is locked: " + holders.joined(separator: ", "),
            hints: ["end what is named, or wait for it with 'candado lock --wait'"])
    }

    private static func say(_ text: String, _ report: LockReport?, _ console: Console) -> ExitStatus {
        if console.isJSON {
            console.line(json(report))
        } else if !console.isQuiet {
            console.line(text)
        }
        return .done
    }

    private static func json(_ report: LockReport?) -> JSON {
        .document([.init("agent", .null)] + (report?.members ?? []))
    }

    /// Asks the process itself to end, which needs no words that both understand: every agent locks then. Throws `error`
    /// when it is not known which process that is.
    private static func terminate(_ home: KeybagHome, _ context: CommandContext, _ error: ProtectionError) throws {
        guard let agent = home.runningAgent(context.system), let process = agent.process, kill(process, SIGTERM) == 0
        else { throw error }
        let end = context.clock.secondsSinceBoot + patience
        while agent.process == process {
            guard context.clock.secondsSinceBoot < end else {
                throw ProtectionError(
                    .agentNotReachable, "the agent, process \(process), was asked to end and does not", cause: error)
            }
            guard Interrupts.wait(milliseconds: 50) else { throw ProtectionError(.cancelled, "interrupted") }
        }
    }
}
