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

/// The client against the agent itself, in a process of its own.
@Suite struct AgentProcessTests {
    private struct Harness: ClassKeyServiceHarness {
        let home: AgentHome
        let client: AgentClient
        var service: any ClassKeyService { client }

        init() throws {
            home = try AgentHome()
            client = try home.connect()
        }

        func unlock() throws { try client.unlock(passcode: try AgentHome.secret(AgentHome.passcode)) }
        func lock() throws {
            guard try client.lock(reason: .command) == .locked else {
                throw RunningProgram.Failure(description: "lock")
            }
        }
    }

    @Test func theClientObeysTheStateMatrix() throws {
        let findings = try ClassKeyServiceSuite.run { try Harness() }
        #expect(findings.isEmpty, "\(findings.joined(separator: "\n"))")
    }

    @Test func statusTellsOfThisClientAndItsLoans() throws {
        let home = try AgentHome()
        let client = try home.connect()
        #expect(try client.status().state == .beforeFirstUnlock)
        #expect(code { try client.unlock(passcode: try AgentHome.secret("wrong")) } == .wrongPasscode)
        try home.unlock()
        #expect(client.lockState == .unlocked && client.hasPasscode && client.isConnected)
        #expect(client.defaultClass == .untilFirstUnlock)
        let keys = try client.makeFileKeys(for: .complete, flags: [], count: 300)
        let status = try client.status()
        #expect(status.keybag == client.keybagIdentifier)
        #expect(UInt32(home.agent?.process ?? 0) == status.process)
        let own = status.clients.filter { $0.process == UInt32(getpid()) }
        #expect(own.reduce(0) { $0 + $1.loans } == 300)
        try client.reload()
        #expect(try AgentClient.status(at: home.socket).state == .unlocked)
        #expect(try AgentClient.lock(at: home.socket, reason: .command).outcome == .locked)
        withExtendedLifetime(keys) {}
    }

    @Test func whatIsLetGoIsGivenBack() throws {
        let home = try AgentHome()
        try home.unlock()
        let client = try home.connect()
        func loans() throws -> UInt32 {
            // A request of the same connection is answered after what went before.
            _ = try client.rewrap(record, to: .none, flags: [])
            return try client.status().clients.reduce(0) { $0 + $1.loans }
        }
        let record = try client.makeFileKey(for: .none, flags: []).record
        var leases: [any FileKeyLease] = []
        for protectionClass in ProtectionClass.allCases {
            leases += try client.makeFileKeys(for: protectionClass, flags: [], count: 100).map(\.lease)
        }
        #expect(try loans() == 400)
        leases.removeLast(399)
        #expect(try loans() == 1)
        leases = []
        #expect(try loans() == 0)
    }

    @Test func aKilledAgentLocksClassesAAndBAndANewOneIsFound() throws {
        let home = try AgentHome()
        try home.unlock()
        let client = try home.connect()
        let keys = try ProtectionClass.allCases.map { try client.makeFileKey(for: $0, flags: []) }
        home.killAgent()
        // At once: nothing was asked for in between.
        #expect(code { try keys[0].lease.withKey { _ in } } == .locked(.complete))
        #expect(code { try keys[1].lease.withKey { _ in } } == .locked(.completeUnlessOpen))
        for key in keys[2...] { try key.lease.withKey { _ in } }
        #expect(!client.isConnected && client.lockState == .locked)
        #expect(code { try client.unwrap(keys[2].record) } == .locked(.untilFirstUnlock))
        try home.startAgent()
        #expect(client.lockState == .beforeFirstUnlock)
        try client.unlock(passcode: try AgentHome.secret(AgentHome.passcode))
        #expect(client.isConnected && client.lockState == .unlocked)
        for key in keys {
            let again = try client.unwrap(key.record)
            try again.withKey { _ in }
        }
        #expect(code { try keys[0].lease.withKey { _ in } } == .locked(.complete))
        for key in keys[2...] { try key.lease.withKey { _ in } }
        try client.stop()
        #expect(!client.isConnected)
        #expect(try home.agent?.wait() == .returned(status: 0))
    }

    @Test func thePasscodeGoesToTheAgentAndStaysNowhereElse() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            var passcode = try SecretBytes.random(count: 48)
            passcode.withUnsafeMutableBytes { bytes in for index in bytes.indices { bytes[index] |= 1 } }
            let home = try AgentHome(passcode: try passcode.copy())
            let client = try home.connect()
            let scan = MemoryScan(for: passcode)
            #expect(try scan.copies() == 1)
            try client.unlock(passcode: passcode)
            #expect(client.lockState == .unlocked)
            #expect(try client.lock(reason: .command) == .locked)
            try AgentClient.unlock(at: home.socket, passcode: passcode)
            #expect(try scan.copies() == 1)
        }
    }

    @Test func anotherKeybagsAgentIsNotTaken() throws {
        let home = try AgentHome()
        let other = try AgentHome()
        let client = try home.connect()
        home.killAgent()
        other.killAgent()
        // The other home's agent at this one's place.
        let agent = try FakeKeyAgent(keybag: [UInt8](repeating: 9, count: 16))
        defer { agent.die() }
        let system = LinuxSystemCalls.shared
        try system.rename(
            agent.socket, in: currentDirectory, to: home.socket, in: currentDirectory, replacing: .allowed)
        #expect(code { try client.makeFileKey(for: .none, flags: []) } == .foreignKeybag(agent.keybag))
        #expect(code { try client.status() } == .foreignKeybag(agent.keybag))
        #expect(client.lockState == .locked)
    }

    @Test func handlesOfFilesObeyTheLockAcrossProcesses() throws {
        let home = try AgentHome()
        try home.unlock()
        let paths = try home.makeFiles()
        let holder = try RunningProgram(
            "candado-test-client", ["hold", home.socket.description] + paths.map(\.description))
        try holder.expect("ready")
        #expect(try holder.ask("read") == "read read read read")
        let report = try AgentClient.lock(at: home.socket, reason: .command)
        #expect(report.outcome == .locked)
        #expect(report.openFiles.map(\.process) == [UInt32(holder.process)])
        #expect(try holder.ask("read") == "locked read read read")
        try home.unlock()
        #expect(try holder.ask("read") == "read read read read")
        home.killAgent()
        #expect(try holder.ask("read") == "locked locked read read")
        try home.startAgent()
        #expect(try holder.ask("read") == "locked locked read read")
        try home.unlock()
        #expect(try holder.ask("read") == "read read read read")
    }
}
