import FileProtection
import Glibc

/// An open keybag for one command, and the one moment at which it is unlocked: when something turns out to be locked.
final class Session {
    let protection: FileProtection
    private let context: CommandContext
    private let source: PasscodeSource
    private var wasAsked = false

    /// Opens the keybag of the home that the command line or the environment names.
    ///
    /// `showsWarnings` false keeps what the keybag has to say for the caller.
    init(_ context: CommandContext, showsWarnings: Bool = true) throws {
        SecretMemory.hardenProcess()
        self.context = context
        source = try PasscodeSource(context)
        protection = try FileProtection.open(
            try Self.home(context), system: context.system, clock: context.clock)
        if showsWarnings { showWarnings() }
    }

    /// The keybag.
    var keybag: Keybag { protection.keybag }

    /// Runs `body`. When it throws `locked`, asks for the passcode, unlocks and runs it once more; without anybody to
    /// ask, or when it cannot be run again, the error stays.
    func unlocking<R>(canRunAgain: () -> Bool = { true }, _ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch let error as ProtectionError {
            guard case .locked = error.code, canRunAgain(), try unlockIfPossible() else { throw error }
            return try body()
        }
    }

    /// Unlocks before work on many files. Without anybody to ask, what is locked is reported file by file.
    func unlockForMany() throws {
        guard keybag.lockState != .unlocked else { return }
        _ = try unlockIfPossible()
    }

    /// Unlocks, once. False when there is nobody to ask, or when it was done already.
    private func unlockIfPossible() throws -> Bool {
        guard !wasAsked, keybag.hasPasscode, keybag.lockState != .unlocked else { return false }
        guard context.prompt.canAsk(source) else { return false }
        wasAsked = true
        try context.prompt.withPasscode(source, prompt: "Passcode: ") { passcode in
            try protection.unlock(passcode: passcode)
        }
        showWarnings()
        return true
    }

    /// Says what the keybag has to say, once.
    func showWarnings() {
        for warning in keybag.takeWarnings() { context.console.warning(warning.description) }
    }

    // MARK: The home

    /// `--home`, else `CANDADO_HOME`, else by the XDG directories.
    static func home(_ context: CommandContext) throws -> KeybagHome {
        if let argument = context.invocation.value(.home) { return KeybagHome(directory: argument.path) }
        if let bytes = environmentBytes("CANDADO_HOME"), !bytes.isEmpty, let path = FilePath(bytes: bytes) {
            return KeybagHome(directory: path)
        }
        var environment: [String: String] = [:]
        for name in ["HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            guard let bytes = environmentBytes(name) else { continue }
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw UsageError("the environment variable \(name) is not UTF-8", hint: "name the home with --home")
            }
            environment[name] = text
        }
        return try KeybagHome(environment: environment)
    }

    private static func environmentBytes(_ name: String) -> [UInt8]? {
        guard let value = getenv(name) else { return nil }
        var bytes: [UInt8] = []
        var position = 0
        while value[position] != 0 {
            bytes.append(UInt8(bitPattern: value[position]))
            position += 1
        }
        return bytes
    }
}
