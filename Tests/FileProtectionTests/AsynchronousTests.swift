import FileProtection
import Synchronization
import TestSupport
import Testing

/// The asynchronous forms: they mean what the others mean, wait on threads of their own, and can be cancelled.
@Suite struct AsynchronousTests {
    /// Long enough for several groups of chunks.
    private static let long = pattern(1_500_000)

    @Test(arguments: ProtectionClass.allCases)
    func theyMeanWhatTheOthersMean(protectionClass: ProtectionClass) async throws {
        let app = try AppFixture()
        try await app.protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        let path = app.path("note")
        for size in [0, 1, 4096, Self.long.count] {
            let content = Array(Self.long[..<size])
            try await app.protection.write(content, to: path, class: protectionClass)
            #expect(try await app.protection.contents(of: path) == content)
            #expect(try app.protection.protectionClass(of: path) == protectionClass)
        }
        for rekey in [false, true] {
            for wanted in ProtectionClass.allCases {
                let change = try await app.protection.setProtectionClass(wanted, of: path, rekey: rekey)
                #expect(change.to == wanted)
                #expect(try await app.protection.contents(of: path) == Self.long)
            }
        }
        try app.protection.lock()
        #expect(await asyncCode { try await app.protection.contents(of: path) } == nil)
        let secret = app.path("secret")
        #expect(
            await asyncCode { try await app.protection.write([1], to: secret, class: .complete) } == .locked(.complete))
        #expect(
            await asyncCode { try await app.protection.unlock(passcode: try AppFixture.secret("no")) }
                == .wrongPasscode)
    }

    /// Otherwise this test would never end: all cooperative threads would wait for the one who may not run.
    @Test func whoWaitsHoldsUpNoCooperativeThread() async throws {
        let app = try AppFixture(passcode: nil)
        let gate = Gate()
        let protection = app.protection
        let paths = (0..<8).map { app.path(FilePath("file \($0)") ?? "file") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for path in paths {
                group.addTask {
                    try await protection.write(
                        [1], to: path, class: ProtectionClass.none,
                        progress: { _ in
                            gate.wait()
                        })
                }
            }
            group.addTask {
                await gate.whenReached()
                gate.open()
            }
            try await group.waitForAll()
        }
        #expect(try app.directory.names(in: "files").count == 8)
    }

    @Test func aTaskThatIsCancelledBeforeItsTurnBeginsNothing() async throws {
        let app = try AppFixture()
        let path = app.path("file")
        let cancelling = SelfCancelling()
        #expect(
            await cancelling.code {
                cancelling.cancel()
                try await app.protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
            } == .cancelled)
        #expect(app.protection.lockState == .beforeFirstUnlock)
        try app.unlock()
        #expect(
            await cancelling.code {
                cancelling.cancel()
                try await app.protection.write([1], to: path)
            } == .cancelled)
        #expect(try app.directory.names(in: "files").isEmpty)
    }

    @Test func aCancelledWriteLeavesTheOldFileAndNothingBesideIt() async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        try await app.protection.write(pattern(10, seed: 1), to: path, class: .complete)
        let bytes = try app.directory.read("files/file")
        let cancelling = SelfCancelling()
        #expect(
            await cancelling.code {
                try await app.protection.write(
                    Self.long, to: path, class: ProtectionClass.none, progress: { _ in cancelling.cancel() })
            } == .cancelled)
        #expect(try app.directory.read("files/file") == bytes)
        #expect(try app.directory.names(in: "files") == ["file"])
    }

    @Test func aCancelledReadEnds() async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        try await app.protection.write(Self.long, to: path)
        let told = Collected<WorkProgress>()
        let cancelling = SelfCancelling()
        #expect(
            await cancelling.code {
                _ = try await app.protection.contents(of: path) { progress in
                    told.add(progress)
                    cancelling.cancel()
                }
            } == .cancelled)
        #expect(told.all.count == 1)
    }

    /// Cancelled at every single system call: the file is as before or as after, in content, class and key.
    @Test(arguments: [false, true])
    func aNewKeyThatIsCancelledAnywhereLeavesTheOldFileOrTheNew(isWrite: Bool) async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        var moment = 1
        var cancelled = 0
        while true {
            try await app.protection.write(Self.long, to: path, class: ProtectionClass.none)
            let before = try app.directory.read("files/file")
            let cancelling = SelfCancelling()
            let counter = CallCounter(at: moment) { cancelling.cancel() }
            let keybag = try app.keybag
            let intercepted = try FileProtection.attach(keybag, system: counter.system)
            let start = counter.calls
            let code = await cancelling.code {
                if isWrite {
                    try await intercepted.write(Self.long.reversed(), to: path, class: .complete)
                } else {
                    try await intercepted.setProtectionClass(.complete, of: path, rekey: true)
                }
            }
            if moment > start, counter.calls < moment { break }
            if code == .cancelled {
                cancelled += 1
                #expect(try app.directory.read("files/file") == before, "call \(moment)")
            } else {
                #expect(code == nil, "call \(moment)")
                #expect(try app.protection.protectionClass(of: path) == .complete, "call \(moment)")
                let content = try await app.protection.contents(of: path)
                #expect(content == (isWrite ? Self.long.reversed() : Self.long), "call \(moment)")
            }
            #expect(try app.directory.names(in: "files") == ["file"], "call \(moment)")
            moment += 1
        }
        #expect(cancelled > 5)
    }

    @Test func aCancelledConversionStopsBetweenFiles() async throws {
        let app = try AppFixture()
        try app.unlock()
        let names = (0..<300).map { "file \($0)" }
        for name in names { try app.directory.write(pattern(5), to: FilePath("files/" + name) ?? "x") }
        var options = TreeConversion.Options()
        options.recursive = true
        let cancelling = SelfCancelling()
        let changed = Collected<String>()
        let (protection, root, chosen) = (app.protection, app.path("."), options)
        let code = await cancelling.code {
            try await protection.convert(
                root, .protect(.complete), options: chosen, progress: { _ in cancelling.cancel() },
                report: { outcome in
                    guard case .changed = outcome.result else { return }
                    changed.add(outcome.path.lastComponent.description)
                })
        }
        #expect(code == .cancelled)
        let done = Set(changed.all)
        #expect(done.count < names.count)
        for name in names {
            let path = app.path(FilePath(name) ?? "x")
            #expect(try app.protection.protectionClass(of: path) == (done.contains(name) ? .complete : nil))
        }
        #expect(try app.directory.names(in: "files").filter { $0.hasPrefix(".candado-tmp") }.isEmpty)
    }

    @Test func progressRisesToItsEnd() async throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("file")
        let written = Collected<WorkProgress>()
        try await app.protection.write(Self.long, to: path, class: .complete, progress: { written.add($0) })
        let read = Collected<WorkProgress>()
        _ = try await app.protection.contents(of: path, progress: { read.add($0) })
        for told in [written.all, read.all] {
            #expect(told.count > 2)
            #expect(zip(told, told.dropFirst()).allSatisfy { $0.completedBytes < $1.completedBytes })
            #expect(told.allSatisfy { $0.totalBytes == UInt64(Self.long.count) })
            #expect(told.last?.fractionCompleted == 1)
        }
        for name in ["a", "b", "c"] { try app.directory.write(pattern(9), to: FilePath("files/" + name) ?? "x") }
        let converted = Collected<WorkProgress>()
        var options = TreeConversion.Options()
        options.recursive = true
        try await app.protection.convert(
            app.path("."), .protect(nil), options: options, progress: { converted.add($0) }, report: { _ in })
        // "file" is protected already and counts as a file that is done; the directory that is marked too.
        #expect(converted.all.last?.completedBytes == 27)
        #expect(converted.all.last?.totalFiles == 4)
        #expect((converted.all.last?.completedFiles ?? 0) >= 4)
        #expect(WorkProgress().fractionCompleted == nil)
        #expect(WorkProgress(totalBytes: 0).fractionCompleted == 1)
        #expect(WorkProgress(completedFiles: 1, totalFiles: 2).fractionCompleted == 0.5)
    }
}

/// Threads wait at it until it is opened; a task waits until eight do.
private final class Gate: @unchecked Sendable {
    private let gate = OrderedGate()
    private let (reached, reacher) = AsyncStream.makeStream(of: Void.self)

    private let waiting = Atomic<Int>(0)

    func whenReached() async { for await _ in reached { return } }

    /// Number 1 comes after number 0, which never comes: all wait until the gate is opened.
    func wait() {
        if waiting.add(1, ordering: .acquiringAndReleasing).newValue == 8 { reacher.yield() }
        _ = gate.pass(1) { false }
    }

    func open() { gate.shut() }
}
