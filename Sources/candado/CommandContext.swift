import LinuxSystem
import ProtectionModel

/// What every command is handed.
struct CommandContext: Sendable {
    let invocation: Invocation
    let console: Console
    let system: any SystemCalls
    let clock: any SystemClock

    /// Asks for passcodes.
    var prompt: PasscodePrompt { PasscodePrompt(system: system, console: console, clock: clock) }

    /// Throws `cancelled` when a signal has asked for the end.
    func checkInterrupt() throws {
        if Interrupts.isRequested { throw ProtectionError(.cancelled, "interrupted") }
    }
}
