import AgentClient
import Glibc
import KeychainModel
import LinuxSystem
import TestSupport
import Testing

/// Many processes at once, and an agent that comes and goes. Field report KC-12.
@Suite struct KeychainLoadTests {
    private static let isLong = getenv("CANDADO_LONG").map { String(cString: $0) == "1" } ?? false

    /// Only documented answers, and nothing is lost: each client checks its own items against what it was told.
    @Test(arguments: [false, true])
    func mixedCallsOfManyProcessesLoseNothing(_ agentRestarts: Bool) throws {
        let home = try AgentHome()
        let count = Self.isLong ? 5000 : 150
        let clients = try (0..<16).map { index in
            try RunningProgram("candado-test-client", ["mixed", home.socket.description, "\(index)", "\(count)"])
        }
        if agentRestarts {
            for index in 0..<3 {
                // One of them is in the middle of its calls.
                try clients[index].expect("quarter")
                home.killAgent()
                try home.startAgent()
            }
        }
        for client in clients {
            var line = try client.line()
            while line == "quarter" { line = try client.line() }
            #expect(!line.contains("failed"), "\(line)")
            var codes = Set<String>()
            for word in line.split(separator: " ") { codes.insert(String(word.prefix { $0 != "=" })) }
            let allowed: Set<String> = ["done", "duplicateItem", "itemNotFound", "busy"]
            #expect(codes.isSubset(of: agentRestarts ? allowed.union(["agentNotReachable"]) : allowed), "\(line)")
            #expect(codes.contains("done"))
            #expect(try client.wait() == .returned(status: 0))
        }
    }
}
