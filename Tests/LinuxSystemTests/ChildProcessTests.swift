import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct ChildProcessTests {
    /// What a shell script writes, started with 0 as /dev/null, 1 and 2 a file of its own.
    private func output(
        of program: FilePath = "/bin/sh", _ arguments: [[UInt8]], given: [ChildProcess.GivenDescriptor] = []
    ) throws -> String {
        let system = LinuxSystemCalls.shared
        let null = try system.openFile("/dev/null", [.read])
        let file = try system.openFile("/tmp", [.read, .write, .unnamed], permissions: 0o600)
        let child = try ChildProcess.start(
            program, arguments: arguments, input: null.number, output: file.number, errors: file.number, given: given)
        #expect(try ChildProcess.waitForEnd(child) == .success)
        return String(decoding: try system.bytes(file.number, count: 65536), as: UTF8.self)
    }

    private func script(_ text: String) -> [[UInt8]] { [Array("-c".utf8), Array(text.utf8)] }

    @Test func aProgramHasTheDescriptorsItWasGivenAndNoOthers() throws {
        // Open and inheritable here, as a careless library leaves them.
        let careless = (0..<20).map { _ in dup(0) } + [fcntl(0, F_DUPFD, 300)]
        defer {
            for number in careless { close(number) }
        }
        let list = script("ls -v /proc/$$/fd; :")
        #expect(try output(list) == "0\n1\n2\n")
        let pair = try SocketPair()
        #expect(try output(list, given: [.init(source: pair.far, target: 3)]) == "0\n1\n2\n3\n")
        #expect(
            try output(
                list, given: [.init(source: pair.far, target: 9), .init(source: pair.near, target: 5)])
                == "0\n1\n2\n5\n9\n")
        // Under its own number, which is close-on-exec here and stays so.
        try #require(pair.far < 1024)
        #expect(try output(list, given: [.init(source: pair.far, target: pair.far)]) == "0\n1\n2\n\(pair.far)\n")
        #expect(isCloseOnExec(pair.far))
    }

    @Test func descriptorsThatChangePlacesAreNotMixedUp() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array("one".utf8), to: "one")
        try directory.write(Array("two".utf8), to: "two")
        let one = try LinuxSystemCalls.shared.openFile("one", in: directory.descriptor, [.read])
        let two = try LinuxSystemCalls.shared.openFile("two", in: directory.descriptor, [.read])
        let text = "cat /proc/self/fd/\(one.number) /proc/self/fd/\(two.number)"
        let swapped: [ChildProcess.GivenDescriptor] = [
            .init(source: one.number, target: two.number), .init(source: two.number, target: one.number),
        ]
        #expect(try output(script(text), given: swapped) == "twoone")
    }

    @Test func argumentsAndEnvironmentArriveByteForByte() throws {
        let words: [[UInt8]] = [Array("%s|".utf8), [0x20, 0x0A], [], [0xFF, 0xC3], Array("'\"$x\\".utf8)]
        let system = LinuxSystemCalls.shared
        let file = try system.openFile("/tmp", [.read, .write, .unnamed], permissions: 0o600)
        let child = try ChildProcess.start(
            "/usr/bin/printf", arguments: words, input: file.number, output: file.number, errors: file.number)
        #expect(try ChildProcess.waitForEnd(child) == .success)
        #expect(
            try system.bytes(file.number, count: 1000)
                == Array(words[1...].map { $0 + [UInt8(ascii: "|")] }.joined()))
        let path = try #require(getenv("PATH"))
        #expect(try output(script("printf %s \"$PATH\"")) == String(cString: path))
    }

    @Test func aProgramLeadsASessionOfItsOwn() throws {
        // The number, and behind the name the state, the parent, the group and the session.
        let words = try output(script("cat /proc/$$/stat; :")).split(separator: " ")
        try #require(words.count > 6)
        #expect(words[3] == "\(getpid())")
        #expect(words[4] == words[0] && words[5] == words[0])
    }

    @Test func signalsAreNeitherBlockedNorIgnored() throws {
        let result = FirstError()
        // On a thread of its own, as what is blocked stays blocked.
        WorkerThreads.run(2) { index in
            guard index == 1 else { return }
            result.note {
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_SETMASK, &all, nil)
                // Ignored by default too: nobody misses it.
                signal(SIGURG, SIG_IGN)
                defer { signal(SIGURG, SIG_DFL) }
                let lines = try output(of: "/bin/cat", [Array("/proc/self/status".utf8)]).split(separator: "\n")
                for name in ["SigBlk:\t", "SigIgn:\t"] {
                    let line = try #require(lines.first { $0.hasPrefix(name) })
                    let set = try #require(UInt64(line.dropFirst(name.count), radix: 16))
                    // But 32 and 33, which are the C library's own.
                    if set & ~0x1_8000_0000 != 0 { throw Unexpected() }
                }
            }
        }
        #expect(result.isEmpty)
    }

    @Test func theEndOfAProgramIsTold() throws {
        let table: [(text: String, end: ChildProcess.End)] = [
            ("exit 0", .returned(status: 0)), ("exit 7", .returned(status: 7)), ("exit 255", .returned(status: 255)),
            ("kill -9 $$", .killed(signal: 9)), ("kill -15 $$", .killed(signal: 15)),
        ]
        for row in table {
            let child = try ChildProcess.start(
                "/bin/sh", arguments: script(row.text), input: 0, output: 1, errors: 2)
            #expect(try ChildProcess.waitForEnd(child) == row.end, "\(row.text)")
            #expect(errorNumber { _ = try ChildProcess.waitForEnd(child) } == ECHILD)
        }
    }

    @Test func aProcessGoesOnAsAnotherProgramOrSaysWhyNot() throws {
        let child = ForkedChild {
            let missing = ChildProcess.replaceThisProcess(by: "/missing", arguments: [])
            let cut = ChildProcess.replaceThisProcess(by: "/bin/sh", arguments: [[0]])
            guard missing.errorNumber == ENOENT, cut.errorNumber == EINVAL else { return false }
            throw ChildProcess.replaceThisProcess(
                by: "/bin/sh",
                arguments: script("[ \"$1\" = 'a b' ] && exit 33") + [
                    Array("sh".utf8), Array("a b".utf8),
                ])
        }
        #expect(try child.end() == .returned(status: 33))
    }

    @Test func whatCannotStartIsToldAtOnce() throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        func start(
            _ program: FilePath, _ arguments: [[UInt8]] = [], _ given: [ChildProcess.GivenDescriptor] = []
        ) -> Int32? {
            errorNumber {
                let child = try ChildProcess.start(
                    program, arguments: arguments, input: 0, output: 1, errors: 2, given: given)
                _ = try ChildProcess.waitForEnd(child)
            }
        }
        #expect(start("/bin/true") == nil)
        #expect(start(directory.appending("missing")) == ENOENT)
        #expect(start(directory.appending("file")) == EACCES)
        #expect(start("/bin/true", [[1, 0, 2]]) == EINVAL)
        #expect(start("/bin/true", [], [.init(source: 0, target: 1)]) == EINVAL)
        #expect(start("/bin/true", [], [.init(source: 0, target: 4), .init(source: 1, target: 4)]) == EINVAL)
        #expect(start("/bin/true", [], [.init(source: 0, target: -1)]) == EINVAL)
        #expect(start("/bin/true", [], [.init(source: 0, target: 1024)]) == EINVAL)
        #expect(start("/bin/true", [], [.init(source: 1_000_000, target: 3)]) == EBADF)
    }
}

@Suite struct ProcessFactsTests {
    private let calls = LinuxInterprocessCalls.shared
    private let system = LinuxSystemCalls.shared

    /// A program that waits until its input ends.
    private func startWaiting(_ program: FilePath, input: Int32) throws -> Int32 {
        try ChildProcess.start(program, arguments: [], input: input, output: 1, errors: 2)
    }

    @Test func theProgramOfAProcessIsKnownUntilItIsGone() throws {
        let pipe = try makePipe()
        let directory = try TemporaryDirectory()
        let copied = try Command.run("cp", ["/bin/cat", directory.appending("a cat").description])
        try #require(copied.status == 0)
        let child = try startWaiting(directory.appending("a cat"), input: pipe.reader)
        #expect(ProcessFacts.executable(of: child) == directory.appending("a cat"))
        try system.unlink("a cat", in: directory.descriptor)
        #expect(ProcessFacts.executable(of: child) == directory.appending("a cat (deleted)"))
        close(pipe.writer)
        close(pipe.reader)
        #expect(try ChildProcess.waitForEnd(child) == .success)
        #expect(ProcessFacts.executable(of: child) == nil)
        #expect(ProcessFacts.executable(of: -1) == nil)
    }

    @Test func aStoppedProcessIsKnownFromARunningOne() throws {
        let pipe = try makePipe()
        let child = try startWaiting("/bin/cat", input: pipe.reader)
        #expect(try !ProcessFacts.isStopped(child, system))
        var status: Int32 = 0
        for _ in 0..<3 {
            kill(child, SIGSTOP)
            #expect(waitpid(child, &status, WUNTRACED) == child)
            #expect(try ProcessFacts.isStopped(child, system))
            kill(child, SIGCONT)
            #expect(waitpid(child, &status, WCONTINUED) == child)
            #expect(try !ProcessFacts.isStopped(child, system))
        }
        close(pipe.writer)
        close(pipe.reader)
        #expect(try ChildProcess.waitForEnd(child) == .success)
        #expect(try !ProcessFacts.isStopped(child, system))
        #expect(try !ProcessFacts.isStopped(getpid(), system))
    }

    @Test func aNameCannotPassForAState() {
        let table: [(text: String, isStopped: Bool)] = [
            ("1 (cat) S 0 1", false), ("1 (cat) T 0 1", true), ("1 (cat) t 0 1", true), ("1 (T) S 0", false),
            ("1 (a) T (b) R 0", false), ("1 (a) S) T 0", true), ("1 () Z", false), ("1 ()", false), ("1 T", false),
            ("", false), (")T", true),
        ]
        for row in table {
            #expect(ProcessFacts.isStopped(status: Array(row.text.utf8)[...]) == row.isStopped, "\(row.text)")
        }
    }
}
