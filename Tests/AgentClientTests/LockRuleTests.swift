import AgentProtocol
import FileProtection
import Glibc
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import AgentClient

/// The lock rule, across processes: no operation that begins after `lock` returned reads a byte of class A, whatever the
/// clients do at that moment; and their memory holds no class A file key then.
@Suite(.serialized) struct LockRuleTests {
    private static let isLong = getenv("CANDADO_LONG") != nil

    /// A page that is shared with clients, made and unmapped here.
    private final class SharedLoopPage {
        let page: LoopPage
        let descriptor: Int32
        private let mapping: SharedMapping

        init() throws {
            let made = try LinuxInterprocessCalls.shared.makeSharedMemory(
                size: LoopPage.size, writableByOthers: true, locked: false)
            descriptor = made.descriptor
            mapping = made.mapping
            page = LoopPage(made.mapping)
        }

        deinit {
            try? LinuxSystemCalls.shared.close(descriptor)
            LinuxInterprocessCalls.shared.unmap(mapping)
        }
    }

    /// Locks until nothing is in the way any more: a lock that is not complete says so.
    private static func lock(_ socket: FilePath) throws -> [String] {
        var obstacles: [String] = []
        while true {
            switch try AgentClient.lock(at: socket, reason: .command).outcome {
            case .locked: return obstacles
            case .incomplete(let holders): obstacles += holders
            case .graceRunning: throw RunningProgram.Failure(description: "a command has no grace period")
            }
        }
    }

    /// Waits until `condition` holds. Which thread runs is the system's business; two minutes are none of a test's.
    private static func await(
        _ what: String, _ programs: [RunningProgram], _ condition: () -> Bool
    ) throws {
        let clock = RealClock()
        let end = clock.secondsSinceBoot + 120
        while !condition() {
            for program in programs where program.hasSomethingToSay {
                throw RunningProgram.Failure(description: try program.line())
            }
            guard clock.secondsSinceBoot < end else { throw RunningProgram.Failure(description: what) }
            sched_yield()
        }
    }

    @Test func noReadAfterALockGivesAByteOfClassA() throws {
        let home = try AgentHome()
        try home.unlock()
        let paths = try home.makeFiles()
        let shared = try SharedLoopPage()
        let page = shared.page
        let clients = try (0..<8).map { index in
            try RunningProgram(
                "candado-test-client",
                ["loop", home.socket.description, "\(index)"] + paths.map(\.description), given: shared.descriptor)
        }
        for client in clients { try client.expect("ready") }
        func everybodyHasSeen(_ phase: UInt32) throws {
            try Self.await("phase \(phase) is not seen by all", clients) {
                clients.indices.allSatisfy { page.seen(by: $0) == phase }
            }
        }
        let rounds: UInt32 = Self.isLong ? 1000 : 100
        for round in 1...rounds {
            page.phase = round * 4
            try everybodyHasSeen(round * 4)
            page.phase = round * 4 + 1
            _ = try Self.lock(home.socket)
            page.phase = round * 4 + 2
            try everybodyHasSeen(round * 4 + 2)
            page.phase = round * 4 + 3
            try home.unlock()
        }
        page.phase = LoopPage.end
        for client in clients { #expect(try client.wait() == .returned(status: 0)) }
    }

    /// The control: the same clients notice when a lock takes nothing away.
    @Test func theClientsNoticeALockThatIsNone() throws {
        let home = try AgentHome()
        try home.unlock()
        let paths = try home.makeFiles()
        let shared = try SharedLoopPage()
        shared.page.phase = 6
        let client = try RunningProgram(
            "candado-test-client", ["loop", home.socket.description, "0"] + paths.map(\.description),
            given: shared.descriptor)
        try client.expect("ready")
        #expect(try client.line().hasPrefix("failed: class A was read after the lock"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into the memory of another process"))
    func aStoppedClientHasLostItsFileKeysOrIsNamed() throws {
        let home = try AgentHome()
        try home.unlock()
        let own = try home.connect()
        let path = try home.makeFile(ProtectedFileSystem(keys: own), .complete, size: 60_000)
        let scan = try own.unwrap(try home.record(of: path)).withKey { ProcessMemoryScan(for: $0.bytes) }
        let shared = try SharedLoopPage()
        let page = shared.page
        let client = try RunningProgram(
            "candado-test-client", ["spin", home.socket.description, path.description], given: shared.descriptor)
        try client.expect("ready")
        var random = DeterministicRandom(seed: 4)
        var outcomes = (locked: 0, named: 0)
        for round in 0..<200 {
            // It reads again, and then goes on for a random while. The first read may have begun before the lock.
            let count = page.seen(by: 0)
            try Self.await("the client does not read", [client]) { page.seen(by: 0) &- count >= 2 }
            for _ in 0..<Int.random(in: 0..<60_000, using: &random) { _ = page.phase }
            try client.stop()
            if round < 3 {
                let found = try scan.places(in: client.process)
                #expect(found.contains { $0.contains("memfd:candado") }, "the key is not seen even where it belongs")
            }
            switch try AgentClient.lock(at: home.socket, reason: .command).outcome {
            case .locked: outcomes.locked += 1
            case .incomplete(let holders):
                outcomes.named += 1
                #expect(holders.count == 1 && holders[0].hasPrefix("process \(client.process) "), "\(holders)")
                client.signal(SIGCONT)
                // It says so until the operation has ended, and only then success.
                for obstacle in try Self.lock(home.socket) {
                    #expect(obstacle.hasPrefix("process \(client.process) "), "\(obstacle)")
                }
                try client.stop()
            case .graceRunning: Issue.record("a command has no grace period")
            }
            let left = try scan.places(in: client.process)
            #expect(left.isEmpty, "round \(round): \(left)")
            try home.unlock()
            client.signal(SIGCONT)
        }
        page.phase = LoopPage.end
        client.signal(SIGCONT)
        #expect(try client.wait() == .returned(status: 0))
        // The key is in hands while a chunk's key is derived, and a lock waits for that unless the client is stopped in it.
        print("stopped clients that had lost the key: \(outcomes.locked) of 200; named: \(outcomes.named)")
        #expect(outcomes.locked >= 100, "\(outcomes)")
    }
}
