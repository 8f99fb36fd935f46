import AgentProtocol
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

/// The secret rule, looked at in the memory of a real agent and of its clients: what a lock has to take away is found before
/// it, where memory can be read at all, and not after. Field report LK-16.
@Suite(.serialized) struct AgentMemoryTests {
    private typealias Home = AgentProcessHome

    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func aLockTakesAllSecretsOutOfTheAgent() throws {
        let home = try Home()
        let secrets = try home.makeFiles()
        let agent = try home.start(["--ordinary-memory"])
        try home.unlock()
        let protection = try home.connect()
        let handles = try home.openFiles(protection)
        let guarded = secrets.guarded + [("file key A", try #require(secrets.fileKeys[.complete]))]
        let kept =
            secrets.lasting + [("file key B", try #require(secrets.fileKeys[.completeUnlessOpen]))]

        func copies(_ scans: [(name: String, scan: MemoryScan)]) throws -> [(name: String, copies: Double)] {
            Array(zip(scans.map(\.name), try MemoryScan.copies(of: scans.map(\.scan), in: agent.process)))
                .map { (name: $0.0, copies: $0.1) }
        }
        for round in 1...2 {
            for (name, copies) in try copies(guarded + kept) {
                #expect(copies >= 1, "\(name) is not found while unlocked: the scan is blind")
            }
            #expect(try secrets.passcode.copies(in: agent.process) == 0, "the passcode outlived its try")
            // Wherever a key lies, no disk, no core file and no child gets it.
            for places in try MemoryScan.places(of: (guarded + kept).map(\.scan), in: agent.process) {
                for place in places { #expect(place.mapping.isKept, "\(place)") }
            }
            #expect(try home.lock() == .locked)
            for (name, copies) in try copies(guarded) { #expect(copies == 0, "\(name) is still there") }
            for (name, copies) in try copies(kept) { #expect(copies >= 1, "\(name) is gone too") }
            // Asking for what is locked brings nothing back.
            #expect(Home.code(handles[0]) == .locked(.complete))
            #expect(throws: ProtectionError.self) { try protection.contents(of: home.path(.completeUnlessOpen)) }
            for (name, copies) in try copies(guarded) { #expect(copies == 0, "\(name) came back") }
            guard round == 1 else { break }
            try home.unlock()
            #expect(Home.code(handles[0]) == nil)
        }
        #expect(try secrets.passcode.copies(in: agent.process) == 0)
        for handle in handles { try handle.close() }
    }

    /// Each way to lock leaves as little as the command does.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func aGracePeriodAndAHangUpLeaveNoSecretInTheAgent() throws {
        var settings = Settings()
        settings.gracePeriod = 1
        let home = try Home(settings: settings)
        let secrets = try home.makeFiles()
        let scans = secrets.guarded.map(\.scan)
        let agent = try home.start(["--ordinary-memory"])
        try home.unlock()
        guard case .graceRunning = try AgentClient.lock(at: home.socket, reason: .idle).outcome else {
            Issue.record("no grace period")
            return
        }
        #expect(try isSoon { try home.status().state == .locked })
        #expect(try MemoryScan.copies(of: scans, in: agent.process).allSatisfy { $0 == 0 })
        try home.unlock()
        #expect(try MemoryScan.copies(of: scans, in: agent.process).allSatisfy { $0 >= 1 })
        agent.kill(SIGHUP)
        #expect(try isSoon { try home.status().state == .locked })
        #expect(try MemoryScan.copies(of: scans, in: agent.process).allSatisfy { $0 == 0 })
    }

    /// The passcode is there while it is worked out, and nothing is left of a try that failed either.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot))
    func aPasscodeIsInTheAgentOnlyWhileItIsTried() throws {
        let home = try Home()
        let agent = try home.start(["--ordinary-memory"])
        let own = MemoryScan(for: try AgentFixture.secret(Home.passcode))
        let wrongText = "another passcode that is not the right one"
        let wrong = MemoryScan(for: try AgentFixture.secret(wrongText))
        for (text, scan, expected) in [
            (wrongText, wrong, ProtectionError.Code.wrongPasscode), (Home.passcode, own, nil),
        ] {
            let client = try RawClient(home.socket)
            try client.hello(wantsMemory: false)
            let tries = try Home.HeldTries(home)
            let number = try client.send(.unlock(passcodeSize: text.utf8.count), passcode: text)
            #expect(try isSoon { try scan.copies(in: agent.process) > 0 }, "the scan is blind")
            tries.letGo()
            #expect(try RawClient.code(of: try client.reply(to: number)) == expected)
            #expect(try scan.copies(in: agent.process) == 0)
        }
        #expect(try home.lock() == .locked)
        #expect(try MemoryScan.copies(of: [own, wrong], in: agent.process) == [0, 0])
    }

    @Test(
        .enabled(if: Home.isRoot, Home.needsRoot),
        .enabled(if: SecretMemory.kind == .secret, "this kernel has no memfd_secret"))
    func secretMemoryCannotBeReadEvenByRootWhileUnlocked() throws {
        let home = try Home()
        let secrets = try home.makeFiles()
        let agent = try home.start()
        try home.unlock()
        let protection = try home.connect()
        let handles = try home.openFiles(protection)
        let classKeys = secrets.guarded + secrets.lasting
        for (scan, copies) in zip(classKeys, try MemoryScan.copies(of: classKeys.map(\.scan), in: agent.process)) {
            #expect(copies == 0, "\(scan.name) is outside of secret memory")
        }
        // Slabs are shared with clients, so they are ordinary locked memory: the scan does see.
        let fileKey = try #require(secrets.fileKeys[.complete])
        #expect(try fileKey.copies(in: agent.process) == 1)
        #expect(try home.lock() == .locked)
        #expect(try fileKey.copies(in: agent.process) == 0)
        for handle in handles { try handle.close() }
    }

    /// A core file that a debugger makes leaves out what is marked; one of everything shows that a lock has cleared it.
    @Test(
        .enabled(if: Home.isRoot, Home.needsRoot), .enabled(if: Command.exists("gcore"), "gdb is not installed"))
    func coreFilesHoldNoSecret() throws {
        let home = try Home()
        let secrets = try home.makeFiles()
        let fileKey = try #require(secrets.fileKeys[.complete])
        let scans = (secrets.guarded + [("file key A", fileKey)]).map(\.scan)
        let agent = try home.start(["--ordinary-memory"])
        try home.unlock()
        let handles = try home.openFiles(try home.connect())
        func core(_ name: FilePath, _ options: [String]) throws -> [Double] {
            let prefix = home.directory.appending(name)
            let result = try Command.run("gcore", options + ["-o", prefix.description, "\(agent.process)"])
            #expect(result.status == 0, "\(result.errorText)")
            let path = try #require(FilePath(bytes: prefix.bytes + Array(".\(agent.process)".utf8)))
            defer { try? LinuxSystemCalls.shared.unlink(path, in: currentDirectory) }
            return try MemoryScan.copies(of: scans, inFile: path)
        }
        #expect(try core("all", ["-a"]).allSatisfy { $0 >= 1 }, "the scan is blind")
        #expect(try core("marked", []).allSatisfy { $0 == 0 }, "what is marked is dumped all the same")
        #expect(try home.lock() == .locked)
        #expect(try core("locked", ["-a"]).allSatisfy { $0 == 0 })
        for handle in handles { try handle.close() }
    }

    /// In a process of its own: the client is looked at too.
    @Test func aClientLosesFileKeysWithTheLockAndWithTheAgentsEnd() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let home = try AgentProcessHome()
            let secrets = try home.makeFiles()
            let keys = try ProtectionClass.allCases.map { try #require(secrets.fileKeys[$0]) }
            func copies() throws -> [Double] { try keys.map { try $0.copies() } }
            let agent = try home.start()
            try home.unlock()
            let protection = try home.connect()
            #expect(try copies() == [0, 0, 0, 0])
            let handles = try home.openFiles(protection)
            #expect(try copies() == [1, 1, 1, 1], "the slab holds each key once, and nothing else does")
            #expect(try home.lock() == .locked)
            #expect(try copies() == [0, 1, 1, 1])
            #expect(handles.map { AgentProcessHome.code($0) } == [.locked(.complete), nil, nil, nil])
            #expect(try copies() == [0, 1, 1, 1])
            try home.unlock()
            #expect(handles.allSatisfy { AgentProcessHome.code($0) == nil })
            #expect(try copies() == [1, 1, 1, 1])
            agent.kill(SIGTERM)
            #expect(try agent.wait() == .success)
            #expect(try copies() == [0, 0, 1, 1], "an agent that ends takes the keys of classes A and B with it")
            #expect(
                handles.map { AgentProcessHome.code($0) } == [
                    .locked(.complete), .locked(.completeUnlessOpen), nil, nil,
                ])
            for handle in handles { try handle.close() }
        }
    }

    /// Memory that an agent shared outlives it when it is killed: nobody clears it, so a lock may not claim that it is gone.
    @Test func whatAKilledAgentLeavesIsNamedUntilItIsGone() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let home = try AgentProcessHome()
            let key = try #require(try home.makeFiles().fileKeys[.complete])
            let agent = try home.start()
            try home.unlock()
            var protection: FileProtection? = try home.connect()
            var handles = try home.openFiles(try #require(protection))
            agent.kill(SIGKILL)
            try agent.wait()
            #expect(try key.copies() == 1)
            let left = LockOutcome.incomplete(
                holders: ["programs that borrowed keys from the agent that was process \(agent.process)"])
            let keybag = try Keybag.open(home.home)
            #expect(try keybag.lock(reason: LockReason.command) == left, "without an agent")
            let next = try home.start()
            #expect(try home.lock() == left)
            #expect(try home.status().inTheWay.count == 1)
            try home.unlock()
            #expect(try home.lock() == left)
            #expect(try key.copies() == 1)

            for handle in handles { try handle.close() }
            handles = []
            protection = nil
            #expect(try key.copies() == 0)
            #expect(try home.lock() == .locked)
            #expect(try keybag.lock(reason: LockReason.command) == .locked)
            next.kill(SIGTERM)
            #expect(try next.wait() == .success)
        }
    }

    /// Nothing that is locked can be swapped out: the mappings say so themselves. Field report LK-16.
    @Test(.enabled(if: Home.isRoot, Home.needsRoot), arguments: [[], ["--ordinary-memory"]])
    func slabsAndSecretMemoryAreLocked(_ options: [String]) throws {
        let home = try Home()
        _ = try home.makeFiles()
        let agent = try home.start(options)
        try home.unlock()
        // More than one slab: 1 page, and then 4.
        let client = try RawClient(home.socket)
        try client.hello()
        var loans: [LoanName] = []
        for _ in 0..<2 { loans += try client.makeKeys(.complete, count: 90).map(\.loan) }
        #expect(client.slabPages == [1, 4])
        #expect(loans.allSatisfy { client.key(of: $0) != nil })
        let mappings = try MemoryScan.mappings(of: agent.process)
        let slabs = mappings.filter {
            $0.name.hasPrefix("/memfd:candado") && $0.flags.contains("lo")
        }
        #expect(slabs.map { $0.range.count }.sorted() == [4096, 4 * 4096])
        for slab in slabs {
            #expect(slab.isKept)
            // The client has it mapped too, so that half of it counts here.
            #expect(slab.sizes["Rss"] == slab.range.count)
            #expect(slab.sizes["Locked"] == slab.sizes["Pss"])
        }
        let arenas = mappings.filter { mapping in
            options.isEmpty && SecretMemory.kind == .secret
                ? mapping.name.hasPrefix("/secretmem")
                : mapping.name.isEmpty && mapping.permissions == "rw-p" && mapping.flags.contains("lo")
        }
        #expect(!arenas.isEmpty)
        for arena in arenas {
            #expect(arena.isKept)
            #expect(arena.sizes["Locked"] == arena.sizes["Rss"] && arena.sizes["Swap"] == 0)
        }
        let locked = (slabs + arenas).reduce(0) { $0 + $1.range.count }
        #expect(try agent.size("VmLck") == locked)
        #expect(try home.status().memoryIsLocked)
    }
}
