import AgentProtocol
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import AgentServer

/// Clients that ask for too much hurt nobody but themselves. Field report MU-06.
@Suite struct AgentProcessLoadTests {
    /// In a process of its own, which needs many descriptors.
    @Test(.enabled(if: ProcessLimits.canHave(11_000), "this process may not have 11,000 descriptors"))
    func tenThousandHalfOpenConnectionsHurtNobody() async {
        await #expect(processExitsWith: .success) {
            ProcessLimits.raiseDescriptorLimit()
            let home = try AgentProcessHome()
            _ = try home.makeFiles()
            // Less than there will be connections: the oldest silent ones have to go.
            let agent = try home.start(wrapper: ["prlimit", "--nofile=4096:4096"])
            try home.unlock()
            let protection = try home.connect()
            let handles = try home.openFiles(protection)
            var silent: [RawClient] = []
            for _ in 0..<500 { silent.append(try RawClient(home.socket)) }
            #expect(try home.status().state == .unlocked)
            let before = try agent.size("VmRSS")
            for _ in silent.count..<10_000 { silent.append(try RawClient(home.socket)) }
            // All have been looked at when one that came after them is answered.
            let status = try home.status()
            #expect(status.state == .unlocked && status.clientCount > 3_000 && status.clientCount < 4_096)
            let growth = try agent.size("VmRSS") - before
            #expect(growth < 16 << 20, "\(growth) bytes for 10,000 connections")
            #expect(handles.allSatisfy { AgentProcessHome.code($0) == nil })
            #expect(try protection.contents(of: home.path(.complete)).count == 100_000)
            #expect(try home.lock() == .locked)
            #expect(AgentProcessHome.code(handles[0]) == .locked(.complete))
            silent = []
            // One for the handles.
            #expect(try isSoon { try home.status().clientCount == 1 })
            agent.kill(SIGTERM)
            #expect(try agent.wait() == .success)
        }
    }

    @Test func aMessageOfAGigabyteIsNotTaken() throws {
        let home = try AgentProcessHome()
        let agent = try home.start()
        let other = try RawClient(home.socket)
        try other.hello(wantsMemory: false)
        let before = try agent.size("VmRSS")

        // The kernel takes no packet of that size; what it does take is too long for the agent, or lies about its size.
        let huge = try RawClient(home.socket)
        let size = 1 << 30
        let memory = try #require(mmap(nil, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
        defer { munmap(memory, size) }
        #expect(Glibc.send(huge.socket, memory, size, Int32(MSG_NOSIGNAL)) == -1 && errno == EMSGSIZE)
        try huge.hello(wantsMemory: false)
        try huge.send([UInt8](repeating: 1, count: AgentFrame.maximumSize + 4096))
        #expect(try huge.isHungUp())
        let liar = try RawClient(home.socket)
        var head = AgentRequest.status.packet(number: 1)
        head.replaceSubrange(0..<4, with: [0, 0, 0, 0x40])
        try liar.send(head)
        #expect(try liar.isHungUp())

        // And one that sends a gigabyte in good packets, and takes no answer, ends at the first that finds no room.
        let flood = try RawClient(home.socket)
        try flood.hello(wantsMemory: false)
        let packet = AgentRequest.status.packet(number: 2)
        var sent = 0
        while sent < 1 << 30, (try? flood.send(packet)) != nil { sent += packet.count }
        #expect(sent < 1 << 24)
        #expect(try other.status().state == .beforeFirstUnlock)
        #expect(try agent.size("VmRSS") - before < 4 << 20)
        #expect(home.log.contains("does not read what it asked for"))
    }
}

extension ProcessLimits {
    /// Whether the hard limit of descriptors leaves room for so many.
    static func canHave(_ count: Int) -> Bool {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max >= count
    }
}
