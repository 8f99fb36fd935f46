import FileProtection
import Glibc
import KeychainModel

/// Where the class keys are for one command: with the agent, when one runs, else with a keybag opened in this process. And
/// the one moment at which it is unlocked for this command alone: when something turns out to be locked.
final class Session {
    private(set) var protection: FileProtection
    private let context: CommandContext
    private let home: KeybagHome
    private let source: PasscodeSource
    private var wasAsked = false

    /// Joins the home that the command line or the environment names with its agent or its keybag.
    ///
    /// Throws `agentNotReachable` when there is an agent that cannot be talked to: a command that went on without it would
    /// have a lock state of its own.
    init(_ context: CommandContext) throws {
        SecretMemory.hardenProcess()
        self.context = context
        source = try PasscodeSource(context)
        home = try Self.home(context)
        protection =
            try Self.withAgent(home, context) ?? FileProtection.open(home, system: context.system, clock: context.clock)
        showWarnings()
    }

    /// Nil when no agent runs, or none is wanted.
    private static func withAgent(_ home: KeybagHome, _ context: CommandContext) throws -> FileProtection? {
        guard !context.invocation.has(.noAgent) else { return nil }
        return try AgentPresence.ifRunning { () throws(ProtectionError) in
            try FileProtection.connect(home, system: context.system, clock: context.clock)
        }
    }

    /// Runs `body`. When it throws `locked`, asks for the passcode, unlocks for this command and runs it once more; without
    /// anybody to ask, or when it cannot be run again, the error stays.
    func unlocking<R>(canRunAgain: () -> Bool = { true }, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            guard Self.isLocked(error), canRunAgain(), try unlockIfPossible() else { throw error }
            return try body()
        }
    }

    private static func isLocked(_ error: any Error) -> Bool {
        switch error {
        case let error as ProtectionError:
            if case .locked = error.code { true } else { false }
        case let error as KeychainError: error.code == .locked
        default: false
        }
    }

    /// Unlocks before work on many files. Without anybody to ask, what is locked is reported file by file.
    func unlockForMany() throws {
        guard protection.lockState != .unlocked else { return }
        _ = try unlockIfPossible()
    }

    /// Unlocks, once, in this process and for this command: what the user locked stays locked for everybody else. False when
    /// there is nobody to ask, or when it was done already.
    private func unlockIfPossible() throws -> Bool {
        guard !wasAsked, protection.control.hasPasscode, protection.lockState != .unlocked else { return false }
        guard context.prompt.canAsk(source) else { return false }
        wasAsked = true
        let isAgents = protection.agent != nil
        let own =
            isAgents ? try FileProtection.open(home, system: context.system, clock: context.clock) : protection
        let prompt = isAgents ? "Passcode, for this command only: " : "Passcode: "
        try context.prompt.withPasscode(source, prompt: prompt) { passcode in
            try own.unlock(passcode: passcode)
        }
        protection = own
        showWarnings()
        return true
    }

    /// Says what the keybag has to say, once.
    func showWarnings() {
        for warning in protection.embeddedKeybag?.takeWarnings() ?? [] {
            context.console.warning(warning.description)
        }
    }

    // MARK: The home

    /// `--home`, else `CANDADO_HOME`, else by the XDG directories.
    static func home(_ context: CommandContext) throws -> KeybagHome {
        if let argument = context.invocation.value(.home) { return KeybagHome(directory: argument.path) }
        return try KeybagHome { name in getenv(name).map { FilePath(copying: $0).bytes } }
    }
}
