import FileProtection
import Glibc
import Keychain
import KeychainModel
import KeychainStore
import Security
import Synchronization

/// The keychain's rows of `Benchmarks/run`. The agent runs already and is unlocked.
///
/// Prints one figure in seconds: of an operation's median, or of all the work.
@main
struct KeychainBenchmark {
    static let usage = """
        usage: candado-keychain-benchmark --home DIR VERB PRESENT COUNT
          fill PRESENT 0          make so many items present, through the agent
          add PRESENT COUNT       add COUNT where PRESENT are, and delete them again: median of one add
          find PRESENT COUNT      look up the secret of one of PRESENT: median
          mixed PROCESSES COUNT   so many processes make COUNT calls each, and nothing is lost: seconds for all
          memory 0 COUNT          add COUNT in memory through the keychain's service: seconds for all
          memory-sec-item 0 COUNT the same through SecItemAdd
          one-of NUMBER COUNT     what a process of 'mixed' does
        """

    static func main() {
        let words = CommandLine.arguments
        guard words.count == 6, words[1] == "--home", let directory = FilePath(words[2]), let first = Int(words[4]),
            let count = Int(words[5])
        else { return finish(64, usage) }
        let benchmark = KeychainBenchmark(home: KeybagHome(directory: directory))
        do {
            switch words[3] {
            case "fill": try benchmark.fill(first)
            case "add": print(try benchmark.add(first, count))
            case "find": print(try benchmark.find(first, count))
            case "mixed": print(try benchmark.mixed(words[0], first, count))
            case "memory": print(try benchmark.memory(count))
            case "memory-sec-item": print(try benchmark.memorySecItem(count))
            case "one-of": try MixedCalls(try benchmark.agent(), process: first).run(count)
            default: finish(64, usage)
            }
        } catch {
            finish(1, "candado-keychain-benchmark: \(words[3]): \(error)")
        }
    }

    static func finish(_ status: Int32, _ text: String) {
        let line = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(status)
    }

    let home: KeybagHome

    private func agent() throws -> any KeychainService { try AgentClient.connect(to: try home.agentSocket()).keychain }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    static func item(_ number: Int, service: String = "benchmark") throws(KeychainError) -> ItemDictionary {
        let secret = try "correct horse battery staple".itemSecret()
        return [
            "class": .text("genp"), "svce": .text(service), "acct": .text("account-\(number)"),
            "labl": .text("item \(number)"), "v_Data": .secret(secret),
        ]
    }

    static func query(_ number: Int, service: String = "benchmark") -> ItemDictionary {
        ["class": .text("genp"), "svce": .text(service), "acct": .text("account-\(number)")]
    }

    func fill(_ present: Int) throws {
        let service = try agent()
        for number in 0..<present {
            do throws(KeychainError) { try service.call(.add(try Self.item(number))) } catch {
                guard error.code == .duplicateItem else { throw error }
            }
        }
    }

    func add(_ present: Int, _ count: Int) throws -> Double {
        let service = try agent()
        var times: [Double] = []
        for number in present..<(present + count) {
            let item = try Self.item(number, service: "added")
            let start = Self.now()
            try service.call(.add(item))
            times.append(Self.now() - start)
        }
        try service.call(.delete(["class": .text("genp"), "svce": .text("added")]))
        return Self.median(times)
    }

    func find(_ present: Int, _ count: Int) throws -> Double {
        let service = try agent()
        var times: [Double] = []
        for number in 0..<count {
            var query = Self.query(number * 7919 % present)
            query["r_Data"] = .boolean(true)
            let start = Self.now()
            let found = try service.perform(.find(query)).results
            times.append(Self.now() - start)
            guard found.first?.secret?.count == 28 else { throw KeychainError(.inputOutput, "the item is not there") }
        }
        return Self.median(times)
    }

    func mixed(_ program: String, _ processes: Int, _ count: Int) throws -> Double {
        guard let path = ProcessFacts.executable(of: getpid()) else {
            throw KeychainError(.inputOutput, "this program's path is not known")
        }
        let start = Self.now()
        var children: [Int32] = []
        for number in 0..<processes {
            let arguments = ["--home", home.directory.description, "one-of", "\(number)", "\(count)"]
            children.append(
                try ChildProcess.start(
                    path, arguments: arguments.map { Array($0.utf8) }, input: 0, output: 2, errors: 2))
        }
        var failed = 0
        for child in children {
            var status: Int32 = 0
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            if status != 0 { failed += 1 }
        }
        guard failed == 0 else { throw KeychainError(.inputOutput, "\(failed) of \(processes) processes failed") }
        return Self.now() - start
    }

    func memory(_ count: Int) throws -> Double {
        let service = LocalKeychain(
            KeychainStore.inMemory(),
            caller: Caller(applicationIdentifier: "b", accessGroups: ["b"], source: .configured))
        let start = Self.now()
        for number in 0..<count { try service.call(.add(try Self.item(number))) }
        return Self.now() - start
    }

    func memorySecItem(_ count: Int) throws -> Double {
        try Keychain.configure(.memory)
        let secret = Data("correct horse battery staple".utf8)
        let start = Self.now()
        for number in 0..<count {
            let item: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "benchmark",
                kSecAttrAccount as String: "account-\(number)", kSecAttrLabel as String: "item \(number)",
                kSecValueData as String: secret,
            ]
            let status = SecItemAdd(item as CFDictionary, nil)
            guard status == errSecSuccess else { throw KeychainError(.inputOutput, "SecItemAdd says \(status)") }
        }
        return Self.now() - start
    }
}
