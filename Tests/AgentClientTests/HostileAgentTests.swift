import AgentProtocol
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import AgentClient

@Suite struct HostileAgentTests {
    /// The descriptors that this process has open, and what each is.
    private static func openDescriptors() throws -> Set<String> {
        let directory = try LinuxSystemCalls.shared.openFile("/proc/self/fd", [.read, .directory])
        let names = try LinuxSystemCalls.shared.entries(directory.number).map(\.name.description)
        return Set(
            names.filter { $0 != "\(directory.number)" }.map { name in
                var target = [UInt8](repeating: 0, count: 256)
                let count = target.withUnsafeMutableBytes { buffer in
                    buffer.bindMemory(to: CChar.self).baseAddress.map {
                        readlink("/proc/self/fd/\(name)", $0, buffer.count)
                    } ?? 0
                }
                return "\(name) \(String(decoding: target.prefix(max(0, count)), as: UTF8.self))"
            })
    }

    private static func address(_ agent: FakeAgent) -> AgentAddress {
        var address = AgentAddress(
            socket: agent.socket, calls: LinuxInterprocessCalls.shared, system: LinuxSystemCalls.shared,
            clock: RealClock())
        address.patience = AgentAddress.Patience(hello: 100, reply: 100)
        return address
    }

    /// In a process of its own, since descriptors are counted and a trap would end it.
    @Test func nothingThatAnAgentSaysAtHelloDoesMoreThanFail() async {
        await #expect(processExitsWith: .success) {
            let tools = try Misdeed.Tools()
            for (round, misdeed) in (Misdeed.atHello.prefix(1) + Misdeed.atHello).enumerated() {
                let before = try Self.openDescriptors()
                do {
                    let agent = try FakeAgent { try misdeed.run($0, tools) }
                    defer { agent.stop() }
                    let address = Self.address(agent)
                    let expected: ProtectionError.Code =
                        misdeed.name.hasPrefix("refuses") ? .busy : .agentNotReachable
                    #expect(code { try AgentClient(address) } == expected, "\(misdeed.name)")
                    let control = AgentControl(address: address)
                    // A welcome without memory is what these want.
                    if misdeed.name != "welcomes without a page" {
                        #expect(code { try control.status() } == expected, "\(misdeed.name)")
                    }
                }
                // What the runtime opens once is open after the first round.
                guard round > 0 else { continue }
                let after = try Self.openDescriptors()
                #expect(after.isSubset(of: before), "\(misdeed.name): left over: \(after.subtracting(before))")
            }
        }
    }

    /// The kernel drops what this process has no number for, and delivers the rest.
    @Test func aProcessWithoutADescriptorForTheLockPageIsToldSo() async {
        await #expect(processExitsWith: .success) {
            let tools = try Misdeed.Tools()
            let agent = try FakeAgent { try tools.afterHello($0) { _, _ in } }
            defer { agent.stop() }
            // Both ends of the connection are this process's.
            try Self.takeDescriptors(leaving: 2)
            #expect(code { try AgentClient(Self.address(agent)) } == .system(EMFILE))
        }
    }

    @Test func aProcessWithoutDescriptorsForFileKeysIsToldSo() async {
        await #expect(processExitsWith: .success) {
            let tools = try Misdeed.Tools()
            let keybag = try #require(tools.keybag)
            let record = try #require(
                KeyRecord(
                    protectionClass: .none, flags: [], generation: 1, keybag: keybag,
                    wrap: .symmetric([UInt8](repeating: 1, count: 40))))
            let connections = Atomic(0)
            let agent = try FakeAgent { connection in
                connections.add(1, ordering: .relaxed)
                try tools.afterHello(connection) { number, _ in
                    try connection.send(Misdeed.loans(), number: number, descriptors: [tools.usage, tools.slab])
                }
            }
            defer { agent.stop() }
            let client = try AgentClient(Self.address(agent))
            try Self.takeDescriptors(leaving: 1)
            #expect(code { try client.unwrap(record) } == .system(EMFILE))
            // Another try on another connection would be in vain.
            #expect(connections.load(ordering: .relaxed) == 1)
        }
    }

    /// Opens files until only so many more can be.
    private static func takeDescriptors(leaving count: Int) throws {
        var limit = rlimit(rlim_cur: 100, rlim_max: 100)
        try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        var taken: [Int32] = []
        while case let number = open("/dev/null", O_RDONLY | O_CLOEXEC), number >= 0 { taken.append(number) }
        try #require(errno == EMFILE && taken.count >= count)
        for number in taken.suffix(count) { close(number) }
    }

    @Test func nothingThatAnAgentSaysToRequestsDoesMoreThanFail() async {
        await #expect(processExitsWith: .success) {
            let tools = try Misdeed.Tools()
            let keybag = try #require(tools.keybag)
            let record = try #require(
                KeyRecord(
                    protectionClass: .complete, flags: [], generation: 1, keybag: keybag,
                    wrap: .symmetric([UInt8](repeating: 1, count: 40))))
            for (round, misdeed) in (Misdeed.atRequests.prefix(1) + Misdeed.atRequests).enumerated() {
                let before = try Self.openDescriptors()
                do {
                    let agent = try FakeAgent { try misdeed.run($0, tools) }
                    defer { agent.stop() }
                    let client = try AgentClient(Self.address(agent))
                    let requests: [() -> ProtectionError.Code?] = [
                        { code { try client.unwrap(record) } },
                        { code { try client.unwrap([KeyRecord](repeating: record, count: 1100)).last?.get() } },
                        { code { try client.makeFileKey(for: .complete, flags: []) } },
                        { code { try client.rewrap(record, to: .untilFirstUnlock, flags: []) } },
                        { code { try client.status() } }, { code { try client.lock(reason: .idle) } },
                        { code { try client.reload() } }, { code { try client.stop() } },
                        { code { try client.unlock(passcode: try SecretBytes.random(count: 3)) } },
                    ]
                    for (index, request) in requests.enumerated() {
                        // These two are what "done" is an answer to, and nobody waits for ever for an unlock.
                        if misdeed.name == "answers with done", index > 5 { continue }
                        if misdeed.name == "says nothing", index == 8 { continue }
                        // One good reply among the bad ones.
                        if misdeed.name == "sends a second usage page", index == 0 { continue }
                        let isRefusal = misdeed.name.contains("a refusal") && index > 3
                        let found = request()
                        #expect(
                            found == .agentNotReachable || isRefusal && found == .locked(nil),
                            "\(misdeed.name), request \(index): \(String(describing: found))")
                    }
                    let events = client.agentEvents()
                    withExtendedLifetime(events) {}
                    #expect(client.lockState == .unlocked)
                }
                // What the runtime opens once is open after the first round.
                guard round > 0 else { continue }
                // Threads that heard events end when they are told, not at once.
                let isSettled = try Self.settles { try Self.openDescriptors().isSubset(of: before) }
                let after = try Self.openDescriptors()
                #expect(isSettled, "\(misdeed.name): left over: \(after.subtracting(before))")
            }
        }
    }

    /// Looks again until it is so, for some seconds at most.
    private static func settles(_ condition: () throws -> Bool) throws -> Bool {
        let clock = RealClock()
        let end = clock.secondsSinceBoot + 20
        while clock.secondsSinceBoot < end {
            if try condition() { return true }
            sched_yield()
        }
        return false
    }

    /// Every prefix of a good reply, and every reply with one byte changed.
    @Test func noTruncatedOrChangedReplyTraps() async {
        await #expect(processExitsWith: .success) {
            let tools = try Misdeed.Tools()
            let keybag = try #require(tools.keybag)
            let record = try #require(
                KeyRecord(
                    protectionClass: .none, flags: [], generation: 1, keybag: keybag,
                    wrap: .symmetric([UInt8](repeating: 1, count: 40))))
            let good = Misdeed.loans().packet(number: 2)
            var packets = (1..<good.count).map { Array(good.prefix($0)) }
            for index in good.indices {
                for bit in 0..<8 {
                    var changed = good
                    changed[index] ^= 1 << UInt8(bit)
                    packets.append(changed)
                }
            }
            let before = try Self.openDescriptors()
            for packet in packets {
                let agent = try FakeAgent { connection in
                    try tools.welcome(connection)
                    _ = try connection.next()
                    try connection.send(packet, descriptors: [tools.usage, tools.slab])
                    while try connection.next() != nil {}
                }
                let client = try AgentClient(Self.address(agent))
                // A changed loan may be as good as another; then it has no key.
                if let lease = try? client.unwrap(record) { _ = try? lease.withKey { _ in } }
                agent.stop()
            }
            let isSettled = try Self.settles { try Self.openDescriptors().isSubset(of: before) }
            let after = try Self.openDescriptors()
            #expect(isSettled, "left over: \(after.subtracting(before))")
        }
    }

    // MARK: Whose agent it is

    @Test func anAgentOfAnotherUserIsNotSpokenTo() throws {
        let spoken = FailureList()
        let agent = try FakeAgent { connection in
            if try connection.next() != nil { spoken.add("a byte was sent") }
        }
        defer { agent.stop() }
        let calls = OtherPeerCalls(user: geteuid() + 1)
        #expect(code { try AgentClient.connect(to: agent.socket, calls: calls) } == .agentNotReachable)
        #expect(code { try AgentClient.status(at: agent.socket, calls: calls) } == .agentNotReachable)
        agent.stop()
        #expect(spoken.all.isEmpty)
    }

    @Test(arguments: [0o770, 0o720, 0o702, 0o777] as [UInt32])
    func aDirectoryThatOthersMayWriteToIsRefused(_ permissions: UInt32) throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let directory = agent.directory
        try LinuxSystemCalls.shared.changePermissions(directory.descriptor, to: permissions)
        #expect(code { try AgentClient.connect(to: agent.socket) } == .agentNotReachable)
        try LinuxSystemCalls.shared.changePermissions(directory.descriptor, to: 0o700)
        _ = try AgentClient.connect(to: agent.socket)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func aDirectoryOfAnotherUserIsRefused() throws {
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        let directory = agent.directory
        try LinuxSystemCalls.shared.changeOwner(directory.descriptor, owner: 65534, group: 65534)
        #expect(code { try AgentClient.connect(to: agent.socket) } == .agentNotReachable)
    }

    @Test func withoutAnAgentTheCauseSaysSo() throws {
        let directory = try TemporaryDirectory(.memory)
        for path in [directory.appending("agent.sock"), directory.appending("none/agent.sock")] {
            do {
                _ = try AgentClient.connect(to: path)
                Issue.record("connected to nothing")
            } catch {
                #expect(error.code == .agentNotReachable)
                #expect((error.cause as? SystemError)?.errorNumber == ENOENT)
            }
        }
        let agent = try FakeKeyAgent()
        defer { agent.die() }
        agent.die()
        do {
            _ = try AgentClient.connect(to: agent.socket)
            Issue.record("connected to nothing")
        } catch { #expect((error.cause as? SystemError)?.errorNumber == ECONNREFUSED) }
    }

    @Test func anotherVersionIsNamed() throws {
        let agent = try FakeAgent { connection in
            _ = try connection.next()
            try connection.send(
                .failure(ProtectionError(.needsNewerVersion, "this agent speaks version 7")), number: 1)
        }
        defer { agent.stop() }
        do {
            _ = try AgentClient.connect(to: agent.socket)
            Issue.record("connected")
        } catch {
            #expect(error.code == .agentNotReachable)
            #expect(AgentTrouble(error) == .otherVersion)
            #expect(error.description.contains("this program speaks versions 1 to 1"))
            #expect(error.description.contains("this agent speaks version 7"))
        }
    }

    /// What is busy is not a file then, and what there is to do is something else.
    @Test func limitsOfTheAgentAreToldFromFilesThatAreBusy() throws {
        let refusing = try FakeAgent { connection in
            _ = try connection.next()
            try connection.send(.failure(ProtectionError(.busy, "too many clients")), number: 0)
        }
        defer { refusing.stop() }
        do {
            _ = try AgentClient.connect(to: refusing.socket)
            Issue.record("connected")
        } catch {
            #expect(error.code == .busy && error.path == nil)
            #expect(AgentTrouble(error) == .atLimit)
        }
        #expect(AgentTrouble(ProtectionError(.busy, "it changed", path: "file")) == nil)
        let lender = try FakeKeyAgent()
        defer { lender.die() }
        let client = try AgentClient.connect(to: lender.socket)
        let record = lender.makeRecord(.none)
        let many = client.unwrap([KeyRecord](repeating: record, count: FakeKeyAgent.slabPages * 96 + 1))
        for result in many.dropLast() { _ = try result.get() }
        guard case .failure(let error)? = many.last else {
            Issue.record("one more was lent")
            return
        }
        #expect(AgentTrouble(error) == .atLimit)
    }

    @Test func anAgentThatDoesNotAnswerIsToldFromNone() throws {
        let agent = try FakeAgent { connection in while try connection.next() != nil {} }
        do {
            _ = try AgentClient(Self.address(agent))
            Issue.record("connected")
        } catch {
            #expect(error.code == .agentNotReachable && error.description.contains("does not answer"))
            #expect(AgentTrouble(error) == .silent)
        }
        agent.stop()
        do {
            _ = try AgentClient(Self.address(agent))
            Issue.record("connected to nobody")
        } catch { #expect(AgentTrouble(error) == .absent) }
    }
}
