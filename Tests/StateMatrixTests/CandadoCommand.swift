import FileProtection
import TestSupport

/// The program `candado`, as a script runs it: without a terminal, and with nothing in its environment but the home.
struct CandadoCommand {
    private let environment: [String]
    private let program = RunningAgent.programs.appending("candado").description

    init(_ agent: RunningAgent) {
        environment = [
            "PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=\(agent.directory.path)", "CANDADO_HOME=\(agent.home.directory)",
        ]
    }

    /// The words of a command as they are run. A session of its own has no terminal to ask on.
    func words(_ arguments: [String]) -> [String] { ["setsid", program] + arguments }

    /// Runs words of any program to its end.
    func run(_ words: [String], input: [UInt8] = []) throws -> CommandResult {
        try Command.run(words[0], Array(words.dropFirst()), input: input, environment: environment)
    }

    /// Runs a command of `candado` that has to end with 0.
    func require(_ arguments: [String]) throws {
        let result = try run(words(arguments))
        guard result.status == 0 else {
            throw RunningAgent.Failure(description: "\(arguments): \(result.status), \(result.errorText)")
        }
    }
}
