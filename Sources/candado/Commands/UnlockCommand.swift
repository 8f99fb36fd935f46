import FileProtection

/// `candado unlock`
enum UnlockCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        try AgentPresence.requireWanted(context)
        SecretMemory.hardenProcess()
        let home = try Session.home(context)
        // Nobody is asked for the passcode of a keybag that is not there.
        _ = try Keybag.claimedIdentifier(in: home, context.system)
        let source = try PasscodeSource(context)
        // An agent that ends at this moment is no reason to fail: the next one is started.
        var status = try Self.again { try statusOfStarted(home, context) }
        let mustTry = !source.isPerson
        if status.state != .unlocked || (mustTry && status.hasPasscode) || status.graceLeft != nil {
            try context.prompt.withPasscode(source, prompt: "Passcode: ") { passcode in
                try AgentClient.unlock(
                    at: try home.agentSocket(context.system), passcode: passcode, system: context.system)
            }
            status = try AgentPresence.requiredStatus(of: home, context)
        }
        guard status.state == .unlocked else {
            throw ProtectionError(.cancelled, "unlocked, and locked again meanwhile")
        }
        report(status, context.console)
        return .done
    }

    /// Tries up to three times as long as the agent goes away under way.
    private static func again<Result>(_ body: () throws -> Result) throws -> Result {
        for _ in 0..<2 {
            do {
                return try body()
            } catch let error as ProtectionError {
                let trouble = AgentTrouble(error)
                guard case .agentNotReachable = error.code, trouble == nil || trouble == .absent else { throw error }
            }
        }
        return try body()
    }

    /// The agent's word, after starting it where that is needed.
    private static func statusOfStarted(_ home: KeybagHome, _ context: CommandContext) throws -> AgentStatus {
        if let status = try AgentPresence.status(of: home, context) { return status }
        _ = try AgentStarter(context, socket: try home.agentSocket(context.system)).start()
        return try AgentPresence.requiredStatus(of: home, context)
    }

    private static func report(_ status: AgentStatus, _ console: Console) {
        if console.isJSON {
            console.line(
                JSON.document([
                    .init("state", .string(status.state.rawValue)), .init("keybag", .string(status.keybag.description)),
                    .init("agent", .object([.init("pid", .integer(Int64(status.process)))])),
                ]))
        } else if !console.isQuiet {
            console.line("unlocked")
        }
        if !status.hasPasscode { console.warning("no passcode is set, so nothing can be locked") }
        if !status.memoryIsLocked { console.warning(StatusCommand.unlockedMemory) }
    }
}
