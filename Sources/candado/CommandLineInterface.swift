import KeychainModel
import LinuxSystem
import ProtectionModel

/// The program, less its process: from words to an exit status.
enum CommandLineInterface {
    /// Runs a command line and returns the process's exit status. Everything that it says goes through `system`.
    static func run(_ arguments: [Argument], system: any SystemCalls, clock: any SystemClock) -> Int32 {
        let plain = Console(system: system)
        let parsed: ParsedCommandLine
        do throws(UsageError) {
            parsed = try CommandTable.parser.parse(arguments)
        } catch {
            return report(error, to: plain)
        }
        switch parsed {
        case .version:
            plain.line("candado \(CommandTable.version)")
            return finish(.done, plain)
        case .help(let topic):
            plain.result(Help.text(topic).utf8)
            return finish(.done, plain)
        case .run(let invocation):
            let console = Console(
                system: system, isQuiet: invocation.has(.quiet), isJSON: invocation.has(.json))
            let context = CommandContext(invocation: invocation, console: console, system: system, clock: clock)
            return run(context)
        }
    }

    private static func run(_ context: CommandContext) -> Int32 {
        do {
            return finish(try CommandDispatch.run(context), context.console)
        } catch {
            let status = report(error, to: context.console)
            _ = context.console.finish()
            return status
        }
    }

    /// Says what went wrong and returns the exit status for it.
    static func report(_ error: any Error, to console: Console) -> Int32 {
        if let signal = Interrupts.received, isInterruption(error) {
            console.error("interrupted")
            return ExitStatus.ofSignal(signal)
        }
        switch error {
        case let error as UsageError:
            console.error(error.message)
            if let hint = error.hint { console.hint(hint) }
            return ExitStatus.usage.rawValue
        case let error as CommandFailure:
            console.error(error.message)
            for hint in error.hints { console.hint(hint) }
            return error.status.rawValue
        case let error as ProtectionError:
            console.error(error)
            return ExitStatus(error.code).rawValue
        case let error as KeychainError:
            console.error(error)
            return ExitStatus(error.code).rawValue
        case let error as SystemError:
            // A reader that went away, as `head` does, is not worth a message.
            guard error.errorNumber != brokenPipe else { return ExitStatus.failed.rawValue }
            console.error(error.description)
            let code = ProtectionError.Code.system(error.errorNumber)
            for hint in Hints.advice(for: code) { console.hint(hint) }
            return ExitStatus(code).rawValue
        default:
            console.error("\(error)")
            return ExitStatus.failed.rawValue
        }
    }

    private static func isInterruption(_ error: any Error) -> Bool {
        if let error = error as? ProtectionError, case .cancelled = error.code { return true }
        return (error as? KeychainError)?.code == .cancelled
    }

    /// Writes what is left of the result. A result that nobody got is a failure, whatever the command achieved; a reader
    /// that went away, as `head` does, is not worth a message.
    private static func finish(_ status: ExitStatus, _ console: Console) -> Int32 {
        guard let failure = console.finish() else { return status.rawValue }
        if failure.errorNumber != brokenPipe { console.error("stdout: \(failure)") }
        return status == .done ? ExitStatus.failed.rawValue : status.rawValue
    }
}

/// `EPIPE`
private let brokenPipe: Int32 = 32
