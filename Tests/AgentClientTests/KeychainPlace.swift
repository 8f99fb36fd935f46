import AgentClient
import Glibc
import KeychainStore
import LinuxSystem
import TestSupport

/// A directory that only this user can write to, with copies of the client.
final class KeychainPlace {
    let home: AgentHome
    let directory: TemporaryDirectory

    init() throws {
        home = try AgentHome()
        directory = try TemporaryDirectory(.disk)
    }

    static let programs: FilePath = (ProcessFacts.ownExecutable ?? ".").parent

    func copy(_ name: FilePath) throws -> FilePath {
        let path = directory.appending(name)
        let result = try Command.run(
            "cp", [Self.programs.appending("candado-test-client").description, path.description])
        guard result.status == 0 else { throw RunningProgram.Failure(description: result.errorText) }
        return path
    }

    /// What a program that is started with these words is told.
    func who(_ words: String...) throws -> String {
        let result = try Command.run("env", words + ["who", home.socket.description], directory: directory.path)
        return String(result.outputText.split(separator: "\n").last ?? "")
    }

    var entitlements: EntitlementsFile { EntitlementsFile(inHome: home.home.directory) }

    var log: String { (try? home.directory.read("log")).map { String(decoding: $0, as: UTF8.self) } ?? "" }

    /// A program that asks what it is told to.
    func asking(_ program: FilePath) throws -> RunningProgram {
        try RunningProgram(program, ["ask", home.socket.description])
    }

    func candado(_ words: String...) throws -> CommandResult {
        try Command.run(
            "env",
            [Self.programs.appending("candado").description, "--home", home.home.directory.description] + words)
    }
}
