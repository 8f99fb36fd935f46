import Glibc
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import AgentServer

/// When the entitlements are read again, and whom their entries mean.
@Suite struct EntitlementsSourceTests {
    private static let one = """
        {"version":1,"programs":{"/bin/a":{"application-identifier":"a","keychain-access-groups":[]}}}
        """

    private static func text(_ path: FilePath) -> String {
        (try? SafeFile.read(path, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared))
            .map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// What was refused for its directory counts as soon as the directory is right, and the other way round.
    @Test func whatTrustDependsOnIsWatchedToo() throws {
        let directory = try TemporaryDirectory()
        let home = directory.appending("home")
        let log = directory.appending("log")
        let file = EntitlementsFile(inHome: home)
        let source = EntitlementsSource([file], log: try AgentLog(file: log), system: LinuxSystemCalls.shared)
        #expect(source.current.files[0].entries.isEmpty)
        // A directory that appears later.
        try LinuxSystemCalls.shared.makeDirectory(home, in: currentDirectory, permissions: 0o700)
        try directory.write(Array(Self.one.utf8), to: "home/entitlements.json")
        #expect(source.current.files[0].entries.count == 1)
        var generation = source.current.generation
        #expect(generation > 0)
        for (mode, count) in [(mode_t(0o777), 0), (0o700, 1), (0o770, 0), (0o755, 1)] {
            #expect(chmod(home.description, mode) == 0)
            #expect(source.current.files[0].entries.count == count, "\(String(mode, radix: 8))")
            #expect(source.current.generation == generation + 1)
            generation = source.current.generation
        }
        if geteuid() == 0 {
            for (owner, count) in [(uid_t(65_534), 0), (0, 1)] {
                #expect(chown(home.description, owner, gid_t.max) == 0)
                #expect(source.current.files[0].entries.count == count)
            }
        }
        // Another file beside it is no change.
        generation = source.current.generation
        try directory.write([1], to: "home/other")
        #expect(source.current.generation == generation)
    }

    /// What no change of a file ends is tried again with each request, and said once.
    @Test func aFileThatCannotBeReadForNowIsTriedAgain() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array(Self.one.utf8), to: "entitlements.json")
        let isFailing = Atomic(true)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { call throws(SystemError) in
                guard isFailing.load(ordering: .acquiring), call.operation == .open else { return .proceed }
                throw call.failure(EMFILE)
            })
        let file = EntitlementsFile(inHome: directory.path, system: system)
        let source = EntitlementsSource(
            [file], log: try AgentLog(file: directory.appending("log")), system: LinuxSystemCalls.shared)
        for _ in 0..<3 { #expect(source.current.files[0].entries.isEmpty) }
        #expect(Self.text(directory.appending("log")).split(separator: "\n").count == 1)
        isFailing.store(false, ordering: .releasing)
        #expect(source.current.files[0].entries.count == 1)
    }

    /// Threads that ask at the same time have a change read once, and all see it.
    @Test func aChangeIsReadOnce() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array(Self.one.utf8), to: "entitlements.json")
        let opened = Atomic(0)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                if call.operation == .open, call.path?.lastComponent == Entitlements.fileName {
                    opened.add(1, ordering: .relaxed)
                }
            })
        let source = EntitlementsSource(
            [EntitlementsFile(inHome: directory.path, system: system)],
            log: try AgentLog(file: directory.appending("log")), system: system)
        for round in 1...3 {
            try EntitlementsFile(inHome: directory.path).set("/bin/r\(round)", identifier: "r", groups: [])
            WorkerThreads.run(8) { _ in
                for _ in 0..<10 {
                    let count = source.current.files[0].entries.count
                    if count != round + 1 { Issue.record("\(count) entries in round \(round)") }
                }
            }
            let count = opened.load(ordering: .relaxed)
            #expect(count == round)
        }
    }

    // MARK: Entries

    /// A program of a directory of its own that waits for the end of its input.
    private final class Program {
        let number: Int32
        let socket: Int32
        private let input: (Int32, Int32)
        private let other: Int32
        private let taken: Double

        init(_ path: FilePath) throws {
            let calls = LinuxInterprocessCalls.shared
            input = try calls.socketPair()
            (socket, other) = try calls.socketPair()
            number = try ChildProcess.start(path, arguments: [], input: input.0, output: 2, errors: 2)
            taken = RealClock().secondsSinceBoot
        }

        deinit {
            kill(number, SIGKILL)
            _ = try? ChildProcess.waitForEnd(number)
            for descriptor in [socket, other, input.0, input.1] { close(descriptor) }
        }

        func identity(_ identification: CallerIdentification) throws -> CallerIdentity {
            let system = LinuxSystemCalls.shared
            return identification.identify(
                try PeerProcess(
                    of: socket, number: number, taken: taken, mark: FileMark(SeenExecutable.link(number), system),
                    LinuxInterprocessCalls.shared, system))
        }
    }

    private static func copy(_ program: String, to path: FilePath) throws {
        let result = try Command.run("cp", ["--remove-destination", program, path.description])
        try #require(result.status == 0)
    }

    /// By device and inode while the file is there, whatever led to it; by its path, without links, when an upgrade has put
    /// another there.
    @Test(arguments: ["real/app", "link/app", "real/../link/./app", "alias", "real//app"])
    func anEntryCountsByAnySpellingAndAfterAnUpgrade(_ spelling: String) throws {
        let directory = try TemporaryDirectory()
        for command in ["mkdir real", "ln -s real link", "ln -s real/app alias"] {
            try #require(try Command.run("sh", ["-c", command], directory: directory.path).status == 0)
        }
        let app = directory.appending("real/app")
        try Self.copy("/bin/cat", to: app)
        let entry = directory.path.description + "/" + spelling
        let text = """
            {"version":1,"programs":{"\(entry)":{"application-identifier":"a","keychain-access-groups":["g"]}}}
            """
        try directory.write(Array(text.utf8), to: "entitlements.json")
        let identification = CallerIdentification(
            [EntitlementsFile(inHome: directory.path)], log: try AgentLog(file: directory.appending("log")),
            system: LinuxSystemCalls.shared)
        let program = try Program(app)
        #expect(try program.identity(identification).caller.accessGroups == ["g", "a"])
        try Self.copy("/bin/cat", to: app)
        #expect(try program.identity(identification).caller.accessGroups == ["g", "a"])
        try #require(unlink(app.description) == 0)
        #expect(try program.identity(identification).caller.accessGroups == ["g", "a"])
    }

    /// Of several that lead to a file, the one of its own path counts.
    @Test func theEntryOfTheVeryPathComesFirst() throws {
        let directory = try TemporaryDirectory()
        let app = directory.appending("z")
        try Self.copy("/bin/cat", to: app)
        try #require(symlink("z", directory.appending("a").description) == 0)
        var entitlements = Entitlements()
        for (name, identifier) in [("a", "link"), ("z", "own")] {
            try entitlements.set(
                Entitlements.Entry(
                    executable: directory.appending(FilePath(name)!).description, applicationIdentifier: identifier))
        }
        try directory.write(entitlements.encoded, to: "entitlements.json")
        let identification = CallerIdentification(
            [EntitlementsFile(inHome: directory.path)], log: try AgentLog(file: directory.appending("log")),
            system: LinuxSystemCalls.shared)
        #expect(try Program(app).identity(identification).caller.accessGroups == ["own"])
    }
}
