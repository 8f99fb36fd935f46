import FileProtection

/// The keybag itself, opened in this process for a command that changes it. The agent is told afterwards.
struct Administration {
    let keybag: Keybag
    private let context: CommandContext

    /// Opens the keybag of the home with its settings. `showsWarnings` false keeps what it has to say for the caller.
    init(_ context: CommandContext, showsWarnings: Bool = true) throws {
        SecretMemory.hardenProcess()
        self.context = context
        let home = try Session.home(context)
        keybag = try Keybag.open(home, system: context.system, clock: context.clock)
        keybag.settings = Keybag.Settings(try Settings.read(from: home, context.system))
        if showsWarnings { showWarnings() }
    }

    /// Says what the keybag has to say, once.
    func showWarnings() {
        for warning in keybag.takeWarnings() { context.console.warning(warning.description) }
    }

    /// Makes the agent, if one runs, read settings and keybag again.
    func tellAgent() { Self.tellAgent(of: keybag.home, context) }

    /// The same without an open keybag.
    static func tellAgent(of home: KeybagHome, _ context: CommandContext) {
        guard !context.invocation.has(.noAgent) else { return }
        do throws(ProtectionError) {
            try home.reachingAgent(context.system) { (socket) throws(ProtectionError) in
                try AgentClient.reload(at: socket, system: context.system)
            }
        } catch {
            guard AgentTrouble(error) != .absent else { return }
            context.console.warning("the agent does not know of it yet: \(error)")
            for hint in Hints.advice(for: error) { context.console.hint(hint) }
        }
    }
}
