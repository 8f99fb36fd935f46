import AgentClient
import FileProtection
import Glibc
import Keybag
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport

/// An agent of its own, as a process. Its entitlements say which access groups this process has.
final class AgentHome: DatabaseHome {
    static var offers: Set<ChecklistNeed> { [.callers, .database] }

    private let place: TemporaryDirectory
    var database: FilePath { home.keychain }
    private let home: KeybagHome
    private let agent: AgentProgram
    private let client: AgentClient

    init() throws {
        place = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: place.appending("home"))
        _ = try ChecklistKeybag.create(home)
        // Whoever runs the tests may lock the screen meanwhile.
        var settings = Settings()
        settings.locksOnScreenLock = false
        settings.locksOnSleep = false
        settings.locksOnSessionEnd = false
        try settings.write(to: home)
        agent = try AgentProgram(home: home.directory, log: place.appending("log"))
        client = try AgentClient.connect(to: try home.agentSocket())
        try unlock()
    }

    /// The agent reads the entitlements before each request.
    func keychain(of caller: Caller) throws -> any KeychainService {
        let groups = caller.accessGroups
        guard let executable = ProcessFacts.executable(of: getpid()), let first = groups.first else {
            throw KeychainError(.missingEntitlement, "no entitlement says that a program has no access group")
        }
        let entry = Entitlements.Entry(
            executable: executable.description, applicationIdentifier: first, accessGroups: groups)
        let entitlements = EntitlementsFile(inHome: home.directory)
        if try entitlements.list() != [entry] {
            try entitlements.set(entry.executable, identifier: first, groups: groups)
        }
        return client.keychain
    }

    func lock() throws { _ = try client.lock(reason: .command) }
    func unlock() throws { try client.unlock(passcode: try ChecklistKeybag.passcode()) }

    // In the home's keybag, as another process does it that then tells nobody.
    func removePasscode() throws { try Keybag.open(home).removePasscode(try ChecklistKeybag.passcode()) }

    func setPasscode() throws {
        let keybag = try Keybag.open(home)
        try keybag.setPasscode(try ChecklistKeybag.passcode(), cost: ChecklistKeybag.cost)
        try unlock()
    }
}
