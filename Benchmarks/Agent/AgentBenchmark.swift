import FileProtection
import Glibc
import Synchronization

/// The agent's rows of `Benchmarks/run`: what a client waits for. The agent runs already and is unlocked.
///
/// Prints one figure in seconds: of an operation's median, or of all the work.
@main
struct AgentBenchmark {
    static let usage = """
        usage: candado-agent-benchmark --home DIR --passcode-file F VERB CLASS NUMBER
          unwrap CLASS COUNT        open one record at a time: median of one
          batch CLASS COUNT         open records in batches of 256: seconds for all
          lock CLIENTS HANDLES      lock with so many clients that hold so many class A loans in all: median
          connect CLIENTS 0         connect so many clients, each with a loan, and ask each once more: seconds for all
          echo 0 COUNT              a packet of the same size to another thread and back: median of one
        """

    static func main() {
        let words = CommandLine.arguments
        guard words.count == 8, words[1] == "--home", words[3] == "--passcode-file", let home = FilePath(words[2]),
            let passcodeFile = FilePath(words[4]), let number = Int(words[7])
        else { return finish(64, usage) }
        ProcessLimits.raiseDescriptorLimit()
        do {
            let benchmark = AgentBenchmark(home: KeybagHome(directory: home), passcodeFile: passcodeFile)
            switch words[5] {
            case "unwrap": print(try benchmark.unwrap(words[6], number))
            case "batch": print(try benchmark.batch(words[6], number))
            case "lock": print(try benchmark.lock(Int(words[6]) ?? 1, number))
            case "connect": print(try benchmark.connect(Int(words[6]) ?? 1))
            case "echo": print(try benchmark.echo(number))
            default: finish(64, usage)
            }
        } catch {
            finish(1, "candado-agent-benchmark: \(words[5]): \(error)")
        }
    }

    static func finish(_ status: Int32, _ text: String) {
        let line = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(status)
    }

    let home: KeybagHome
    let passcodeFile: FilePath

    private func client() throws -> AgentClient { try AgentClient.connect(to: try home.agentSocket()) }

    private func records(_ name: String, _ client: AgentClient) throws -> [KeyRecord] {
        guard let protectionClass = ProtectionClass(name: name) else {
            throw ProtectionError(.invalidArgument, "no such class: \(name)")
        }
        return try client.makeFileKeys(for: protectionClass, flags: [], count: 256).map(\.record)
    }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    func unwrap(_ name: String, _ count: Int) throws -> Double {
        let client = try client()
        let records = try records(name, client)
        var times: [Double] = []
        for index in 0..<count {
            let start = Self.now()
            let lease = try client.unwrap(records[index % records.count])
            times.append(Self.now() - start)
            _ = lease
        }
        return Self.median(times)
    }

    func batch(_ name: String, _ count: Int) throws -> Double {
        let client = try client()
        let some = try records(name, client)
        // A walk that knows its records hands over many; the client cuts them into messages of 256.
        let many = (0..<16).flatMap { _ in some }
        let start = Self.now()
        var done = 0
        while done < count {
            for result in client.unwrap(many) { _ = try result.get() }
            done += many.count
        }
        return (Self.now() - start) * Double(count) / Double(done)
    }

    func lock(_ clients: Int, _ handles: Int) throws -> Double {
        var times: [Double] = []
        let all = try (0..<clients).map { _ in try client() }
        let control = try client()
        for _ in 0..<20 {
            try unlock(control)
            let loans = try all.map { client in
                try client.makeFileKeys(for: .complete, flags: [], count: max(1, handles / clients))
            }
            let start = Self.now()
            let outcome = try control.lock(reason: .command)
            times.append(Self.now() - start)
            guard outcome == .locked else { throw ProtectionError(.busy, "\(outcome)") }
            for loan in loans.joined() where (try? loan.lease.withKey { _ in }) != nil {
                throw ProtectionError(.busy, "a loan outlived the lock")
            }
        }
        try unlock(control)
        return Self.median(times)
    }

    func connect(_ clients: Int) throws -> Double {
        let start = Self.now()
        let all = try (0..<clients).map { _ in try client() }
        let loans = try all.map { try $0.makeFileKey(for: .complete, flags: []) }
        for (client, loan) in zip(all, loans) { _ = try client.unwrap(loan.record) }
        return Self.now() - start
    }

    /// The floor of every round trip on this machine: two threads, one packet there and one back, both asleep meanwhile.
    func echo(_ count: Int) throws -> Double {
        let calls = LinuxInterprocessCalls.shared
        let (near, far) = try calls.socketPair()
        let times = Mutex<[Double]>([])
        WorkerThreads.run(2) { thread in
            var packet = [UInt8](repeating: 0, count: 128)
            packet.withUnsafeMutableBytes { buffer in
                let whole = UnsafeRawBufferPointer(buffer)
                for _ in 0..<count {
                    if thread == 0 {
                        let start = Self.now()
                        try? calls.send(near, [whole], descriptors: [], wait: true)
                        _ = try? calls.receive(near, into: buffer, wait: true)
                        times.withLock { $0.append(Self.now() - start) }
                    } else {
                        _ = try? calls.receive(far, into: buffer, wait: true)
                        try? calls.send(far, [whole], descriptors: [], wait: true)
                    }
                }
            }
        }
        return Self.median(times.withLock { $0 })
    }

    /// The passcode file holds the passcode and nothing else, no line feed either.
    private func unlock(_ client: AgentClient) throws {
        var size = 0
        let line = try SecretBytes(count: Passcode.maximumCount) { buffer in
            size = try SafeFile.read(passcodeFile, into: buffer, ownerOnly: true, LinuxSystemCalls.shared)
        }
        let passcode = try line.withUnsafeBytes {
            try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<size]))
        }
        try client.unlock(passcode: passcode)
    }
}
