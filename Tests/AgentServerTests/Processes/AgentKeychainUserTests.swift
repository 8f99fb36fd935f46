import AgentProtocol
import FileProtection
import Glibc
import KeychainModel
import TestSupport
import Testing

@testable import AgentServer

/// The keychain of an ordinary user, whose agent sees no more of others than that user may.
@Suite struct AgentKeychainUserTests {
    private typealias Home = AgentProcessHome

    /// Runs the client as the home's user: a line each.
    private static func ask(_ home: Home, _ lines: [String]) throws -> [String] {
        let words = ["--reuid", "\(home.user)", "--regid", "\(home.user)", "--clear-groups"]
        let program = AgentProcess.programs.appending("candado-test-client").description
        let result = try Command.run(
            "setpriv", words + [program, "ask", home.socket.description],
            input: Array((lines.joined(separator: "\n") + "\n").utf8))
        return result.outputText.split(separator: "\n").map(String.init)
    }

    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func theCommandAndAProgramUseTheKeychainOfAnOrdinaryUser() throws {
        let home = try Home(user: Home.nobody)
        try home.start()
        try home.directory.write(Array(Home.passcode.utf8), to: "passcode")
        let passcode = home.directory.appending("passcode").description
        #expect(chown(passcode, home.user, home.user) == 0)
        #expect(try home.candado(["unlock", "--passcode-file", passcode]).status == 0)

        // The command hides its memory, after it has connected.
        let names = ["--service", "s", "--account", "a"]
        #expect(try home.candado(["keychain", "add"] + names, input: "secret").status == 0)
        #expect(try home.candado(["keychain", "get"] + names).outputText == "secret")
        #expect(try home.candado(["keychain", "list"]).outputText.contains("1 item"))
        #expect(home.log.contains("is 'candado' (administrator)"))

        let found = try Self.ask(home, ["add a", "find a", "hide", "find a", "who", "new", "find a", "who"])
        let path = AgentProcess.programs.appending("candado-test-client").description
        try #require(found.count == 8, "\(found)")
        #expect(found[...4] == ["done", "done", "done", "done", "executable \(path)"])
        #expect(found[5] == "done")
        #expect(found[6].hasPrefix("missingEntitlement: ") && found[6].contains("hid its memory"), "\(found[6])")
        #expect(found[7] == "executable")
        #expect(try home.candado(["lock"]).status == 0)
        #expect(try home.candado(["keychain", "get"] + names).status == 10)
        #expect(try Self.ask(home, ["find a"]) == ["done"], "class dk is readable always")
    }

    /// Beyond the agent's descriptors others hear that it is busy, and all is well when there are some again.
    @Test func fewDescriptorsMakeTheAgentBusyAndNothingElse() throws {
        let home = try Home()
        let agent = try home.start(wrapper: ["prlimit", "--nofile=72:72"])
        let first = AgentKeychain(at: home.socket)
        try first.connect()
        var others: [AgentKeychain] = []
        var failure: KeychainError?
        while failure == nil, others.count < 200 {
            let keychain = AgentKeychain(at: home.socket)
            do throws(KeychainError) {
                try keychain.connect()
                others.append(keychain)
            } catch { failure = error }
        }
        #expect(failure?.code == .busy, "\(String(describing: failure))")
        #expect(others.count > 4)
        // Who has a connection goes on.
        for keychain in others.prefix(3) + [first] {
            #expect(try keychain.perform(.whoAmI).answer.caller?.accessGroups.count == 1)
        }
        others = []
        #expect(isSoon { (try? AgentKeychain(at: home.socket).perform(.whoAmI)) != nil })
        #expect(try !agent.hasEnded)
    }
}
