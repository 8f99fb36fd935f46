import AgentClient
import Glibc
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

private typealias Words = KeychainWords

/// Callers of whom the agent sees less than it would like.
@Suite struct KeychainHiddenCallerTests {
    /// A system in which the executables of processes cannot be looked at while a test says so.
    private final class Hiding: Sendable {
        let isOn = Atomic(false)

        var system: any SystemCalls {
            InterceptedSystemCalls(
                LinuxSystemCalls.shared,
                intercept: { [self] call throws(SystemError) in
                    guard isOn.load(ordering: .acquiring), call.operation == .statusOfPath,
                        call.path == FilePath("/proc/\(getpid())/exe")
                    else { return .proceed }
                    throw call.failure(ErrorNumber.accessDenied)
                })
        }
    }

    private static func groups(_ keychain: AgentKeychain) throws -> [String] {
        try keychain.perform(.whoAmI).answer.caller?.accessGroups ?? ["nobody"]
    }

    /// Who hides its memory once it is known keeps what it has, also when the entitlements of others change, and its own
    /// count still. Who does so before has nothing, and is told why.
    @Test func whoHidesItsMemoryConnectsBefore() throws {
        let hiding = Hiding()
        let fixture = try AgentFixture()
        let agent = try fixture.start(system: hiding.system)
        #expect(agent.isReady)
        let path = try #require(ProcessFacts.ownExecutable?.text)
        let entitlements = EntitlementsFile(inHome: fixture.home.directory)
        let keychain = AgentKeychain(at: fixture.socket)
        #expect(try Self.groups(keychain) == [path])
        hiding.isOn.store(true, ordering: .releasing)
        #expect(try Self.groups(keychain) == [path])
        try entitlements.set("/bin/sh", identifier: "org.example.other", groups: [])
        #expect(try Self.groups(keychain) == [path])
        try entitlements.set(path, identifier: "org.example.app", groups: ["g"])
        #expect(try Self.groups(keychain) == ["g", "org.example.app"])
        try entitlements.remove(path)
        #expect(try Self.groups(keychain) == [path])
        #expect(!fixture.log.contains("another program"))

        let late = AgentKeychain(at: fixture.socket)
        #expect(try Self.groups(late) == [])
        do throws(KeychainError) {
            try late.perform(.find(Words.item("a"))) { _ in }
            Issue.record("it has items")
        } catch {
            #expect(error.code == .missingEntitlement)
            #expect(error.message.contains("PR_SET_DUMPABLE") && error.message.contains("before it connected"))
        }
        #expect(fixture.log.contains("cannot be told from others"))
        // What it shows later counts for later connections.
        hiding.isOn.store(false, ordering: .releasing)
        #expect(try Self.groups(late) == [])
        #expect(try Self.groups(AgentKeychain(at: fixture.socket)) == [path])
    }

    // MARK: Kernels without descriptors of peers

    @Test func withoutDescriptorsOfPeersTheNumberAndTheStartCountAndTheLogSaysSo() throws {
        for isNew in [true, false] {
            let fixture = try AgentFixture()
            let calls = TestCalls()
            calls.rules.withLock { $0.hasProcessDescriptors = isNew }
            let agent = try fixture.start(calls: calls)
            #expect(agent.isReady)
            let path = try #require(ProcessFacts.ownExecutable?.text)
            #expect(try Self.groups(AgentKeychain(at: fixture.socket)) == [path])
            let isCertain = try LinuxInterprocessCalls.shared.hasDescriptorsOfPeers
            #expect(fixture.log.contains("told by its number and start") == !(isNew && isCertain))
        }
    }

    /// A number that was given to another process after the connection was taken is nobody's.
    @Test func aNumberThatIsUsedAgainIsNobodys() throws {
        let calls = TestCalls()
        calls.rules.withLock { $0.hasProcessDescriptors = false }
        let system = LinuxSystemCalls.shared
        let (one, other) = try calls.socketPair()
        defer {
            try? system.close(one)
            try? system.close(other)
        }
        let before = RealClock().secondsSinceBoot - 1
        let program = try AgentProcess(["infinity"], program: "sleep")
        func peer(_ taken: Double) throws -> PeerProcess {
            try PeerProcess(of: one, number: program.process, taken: taken, mark: nil, calls, system)
        }
        let since = try peer(RealClock().secondsSinceBoot + 1)
        #expect(since.isThere && !since.isCertain)
        #expect(try !peer(before).isThere)
        program.kill(SIGKILL)
        try program.wait()
        #expect(!since.isThere)
        #expect(try !peer(RealClock().secondsSinceBoot).isThere)
    }
}

extension LinuxInterprocessCalls {
    /// Whether this kernel has them.
    fileprivate var hasDescriptorsOfPeers: Bool {
        get throws {
            let (one, other) = try socketPair()
            defer {
                try? LinuxSystemCalls.shared.close(one)
                try? LinuxSystemCalls.shared.close(other)
            }
            guard let descriptor = try processDescriptor(ofPeer: one) else { return false }
            try LinuxSystemCalls.shared.close(descriptor)
            return true
        }
    }
}
