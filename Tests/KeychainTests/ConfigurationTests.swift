import FileProtection
import Glibc
import KeychainModel
import KeychainStore
import TestSupport
import Testing

@testable import Keychain

/// The keychain of a process. Each test has a process of its own: it is one for all that run in one.
@Suite struct ConfigurationTests {
    private static let item = GenericPassword(service: "s", account: "a")

    @Test func theVariableSelectsAKeychainInMemoryWhereNothingIsConfigured() async {
        await #expect(processExitsWith: .success) {
            setenv("CANDADO_KEYCHAIN", "memory", 1)
            setenv("CANDADO_HOME", "/nonexistent", 1)
            try await Keychain.shared.add(note, secret: "1", accessible: .whenUnlocked)
            #expect(try await Keychain.shared.text(note) == "1")
            // A program of its own, that holds every group.
            let caller = try await Keychain.shared.caller()
            #expect(caller.holdsAllGroups)
            #expect(caller.accessGroups.first == ProcessFacts.executable(of: getpid())?.lastComponent.text)
        }
    }

    @Test func theVariableChangesNoOtherHome() async {
        await #expect(processExitsWith: .success) {
            setenv("CANDADO_KEYCHAIN", "memory", 1)
            try Keychain.configure(.agent(of: KeybagHome(directory: "/nonexistent")))
            #expect(await code { try await Keychain.shared.get(note) } == .notAvailable)
        }
    }

    @Test(arguments: ["", "Memory", "agent", "memory "])
    func aVariableWithoutAMeaningIsAnError(_ value: String) {
        #expect(code { try Keychain.configuration(of: value) } == .notAvailable)
    }

    @Test func withoutAKeybagOrAnAgentTheErrorSaysWhatToDo() async {
        await #expect(processExitsWith: .success) {
            let home = try TestHome()
            for (directory, expected, command) in [
                (home.directory.appending("nowhere"), KeychainError.Code.notAvailable, "candado init"),
                (home.home.directory, .agentNotReachable, "candado unlock"),
            ] {
                setenv("CANDADO_HOME", directory.description, 1)
                var caught: KeychainError?
                do throws(KeychainError) { _ = try await Keychain.shared.get(note) } catch { caught = error }
                let error = try #require(caught)
                #expect(error.code == expected)
                #expect(error.message.contains("'\(command)'"))
                #expect(error.message.contains("Keychain.configure(.memory)"))
            }
        }
    }

    @Test func configuringThatFailsLeavesWhatWasConfigured() async {
        await #expect(processExitsWith: .success) {
            try Keychain.configure(.memory)
            try await Keychain.shared.add(note, secret: "1", accessible: .whenUnlocked)
            let nowhere = KeybagHome(directory: "/nonexistent")
            #expect(code { try Keychain.configure(.embedded(nowhere)) } == .notAvailable)
            #expect(try await Keychain.shared.text(note) == "1")
            try Keychain.configure(.memory)
            #expect(try await Keychain.shared.get(note) == nil)
        }
    }

    @Test func tasksOfATestCanBeGivenAKeychainOfTheirOwn() async throws {
        let service = LocalKeychain(
            KeychainStore.inMemory(),
            caller: Caller(applicationIdentifier: "t", accessGroups: ["t"], source: .configured))
        try await Keychain.$given.withValue(service) {
            try await Keychain.shared.add(note, secret: "1", accessible: .whenUnlocked)
            #expect(try Keychain.currentService() === service)
        }
        #expect(try await Keychain(.given(service)).text(note) == "1")
    }

    @Test func embeddedKeychainsWithDatabasesOfTheirOwnAreApart() async throws {
        let home = try TestHome()
        let other = home.directory.appending("other.sqlite")
        let keybag = try Keybag.open(home.home)
        try keybag.unlock(passcode: try home.passcode())
        let one = try Keychain(.embedded(keybag))
        let two = try Keychain(.embedded(keybag, database: other))
        try await one.add(note, secret: "1", accessible: .whenUnlocked)
        #expect(try await two.get(note) == nil)
        try await two.add(note, secret: "2", accessible: .whenUnlocked)
        #expect(try await Keychain(.embedded(keybag)).text(note) == "1")
        #expect(try await Keychain(.embedded(keybag, database: other)).text(note) == "2")
        _ = try keybag.lock(reason: .command)
        #expect(await code { try await one.get(note) } == .locked)
        #expect(await code { try await two.get(note) } == .locked)
    }

    @Test func anEmbeddedKeychainOfAHomeThatIsLockedStaysLocked() async throws {
        let home = try TestHome()
        let keychain = try Keychain(.embedded(home.home))
        #expect(await code { try await keychain.add(note, secret: "1", accessible: .whenUnlocked) } == .locked)
        try await keychain.add(note, secret: "1", accessible: .always)
        #expect(try await keychain.text(note) == "1")
    }

    /// Its parent's items and keys lie in memory that it does not have.
    @Test func aForkedChildIsRefusedAndTheParentGoesOn() async {
        await #expect(processExitsWith: .success) {
            try Keychain.configure(.memory)
            let item: ItemDictionary = [
                "class": .text("genp"), "acct": .text("a"), "v_Data": .secret(try "x".itemSecret()),
            ]
            _ = try Keychain.currentService().perform(.add(item))
            let query: ItemDictionary = ["class": .text("genp"), "r_Data": .boolean(true)]
            let child = fork()
            if child == 0 {
                let isRefused = code { try Keychain.currentService().perform(.find(query)) } == .notAvailable
                let isFresh =
                    code { try Keychain.configure(.memory) } == nil
                    && code { try Keychain.currentService().perform(.find(query)) } == .itemNotFound
                _exit(isRefused && isFresh ? 0 : 1)
            }
            var status: Int32 = -1
            waitpid(child, &status, 0)
            #expect(status == 0)
            #expect(try Keychain.currentService().perform(.find(query)).results.count == 1)
        }
    }
}
