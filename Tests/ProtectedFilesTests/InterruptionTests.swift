import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// A lock at every use of the key, in the middle of every operation: the file is as before or as after, the error is
/// `locked`, nothing is left behind or called damaged, and the operation can be made again after the next unlock.
@Suite struct InterruptionTests {
    typealias Broken = CrashScript.Broken

    /// Runs `body` with a lock at use 1, then 2, and so on until there is no such use. Returns the number of runs.
    @discardableResult
    private static func lockingAtEveryUse(
        _ keys: InterruptibleKeys, unlocksAtOnce: Bool = false, step: Int = 1, isThreaded: Bool = false,
        setUp: () throws -> Void, _ body: (ProtectedFileSystem) throws -> Void,
        check: (Int, (any Error)?) throws -> Void
    ) throws -> Int {
        for number in stride(from: 1, through: Int.max, by: step) {
            try setUp()
            keys.begin(lockingAt: number, unlocksAtOnce: unlocksAtOnce)
            let calls = FailingCalls()
            var thrown: (any Error)?
            do {
                try body(ProtectedFileSystem(keys: keys, system: keys.watching(calls.system)))
            } catch {
                thrown = error
            }
            guard isThreaded || keys.callsInUse.isEmpty else {
                throw Broken(description: "called with the key in hands: \(keys.callsInUse)")
            }
            guard keys.wasLocked else {
                if let thrown { throw thrown }
                return number / step
            }
            guard calls.leaked.isEmpty else { throw Broken(description: "lock \(number) left open \(calls.leaked)") }
            if let thrown {
                guard case .locked? = (thrown as? ProtectionError)?.code else {
                    throw Broken(description: "lock \(number) was reported as \(thrown)")
                }
            }
            keys.unlock()
            try check(number, thrown)
        }
        return 0
    }

    private static func expectNoTemporaryName(_ directory: TemporaryDirectory, _ number: Int) throws {
        let names = try directory.names(in: "files").filter { $0.hasPrefix(".") }
        guard names.isEmpty else { throw Broken(description: "lock \(number) left \(names)") }
    }

    @Test(arguments: FaultTests.operations, [false, true])
    func aLockMayComeAtEveryUseOfTheKey(operation: FaultTests.Operation, unlocksAtOnce: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let keys = InterruptibleKeys(fixture.keybag)
        var failures = 0
        let runs = try Self.lockingAtEveryUse(keys, unlocksAtOnce: unlocksAtOnce) {
            try FaultTests.empty(fixture.directory)
            try fixture.files.write(FaultTests.old, to: path, class: .complete)
        } _: { files in
            try operation.run(files, path)
        } check: { number, error in
            if error != nil { failures += 1 }
            let content = try FaultTests.found(fixture.files, path)
            guard operation.allowed.contains(content) else {
                throw Broken(description: "lock \(number): \(content.count) bytes, neither before nor after")
            }
            guard error != nil || content == operation.allowed.last else {
                throw Broken(description: "lock \(number): promised, but not done")
            }
            try Self.expectNoTemporaryName(fixture.directory, number)
            if try FileInspection.inspect(path).state == .protected {
                try operation.run(ProtectedFileSystem(keys: keys), path)
            }
        }
        #expect(runs > 3)
        #expect(failures > 2)
    }

    /// The caller's own handle goes on after the next unlock, and nothing was done twice.
    @Test(arguments: [false, true])
    func aHandleGoesOnAfterAnInterruption(unlocksAtOnce: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let keys = InterruptibleKeys(fixture.keybag)
        let patched = FaultTests.replacing(2000..<7000, in: FaultTests.old, with: FaultTests.patch)
        var interrupted = 0
        let runs = try Self.lockingAtEveryUse(keys, unlocksAtOnce: unlocksAtOnce) {
            try FaultTests.empty(fixture.directory)
            try fixture.files.write(FaultTests.old, to: path, class: .complete)
        } _: { files in
            func again<Value>(_ allowed: [[UInt8]], _ body: () throws -> Value) throws -> Value {
                do { return try body() } catch {
                    guard case .locked? = (error as? ProtectionError)?.code else { throw error }
                }
                interrupted += 1
                if !unlocksAtOnce {
                    guard case .locked? = code(body) else { throw Broken(description: "not locked") }
                }
                let content = try fixture.files.contents(of: path)
                guard allowed.contains(content) else {
                    throw Broken(description: "\(content.count) bytes, neither before nor after")
                }
                keys.unlock()
                return try body()
            }
            let steps = [
                FaultTests.old, patched, patched + FaultTests.patch, Array((patched + FaultTests.patch)[..<10_000]),
            ]
            let handle = try again([steps[0]]) { try files.open(path, for: .updating) }
            try again([steps[0], steps[1]]) { try handle.write(FaultTests.patch, at: 2000) }
            try again([steps[1], steps[2]]) { try handle.write(FaultTests.patch, at: 9000) }
            guard try again([steps[2]], { try handle.allContent() }) == steps[2] else {
                throw Broken(description: "the handle reads something else")
            }
            try again([steps[2], steps[3]]) { try handle.truncate(to: 10_000) }
            if code({ try handle.synchronize() }) != nil { throw Broken(description: "not made durable") }
            if code({ try handle.close() }) != nil { throw Broken(description: "not closed") }
            guard try fixture.files.contents(of: path) == steps[3] else { throw Broken(description: "not all done") }
        } check: { number, error in
            if let error { throw error }
            let handle = try ProtectedFileSystem(keys: keys).open(path, for: .updating)
            try handle.write([1], at: 0)
            try handle.close()
            try CrashScript.checkTidy(path, length: 10_000)
        }
        #expect(runs > 10)
        #expect(interrupted > 5)
    }

    /// Long content is sealed and opened by several threads.
    @Test func aLongFileIsWrittenAndReadWholeOrNotAtAll() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let keys = InterruptibleKeys(fixture.keybag)
        let content = pattern(1_500_000, seed: 5)
        try Self.lockingAtEveryUse(keys, step: 37, isThreaded: true) {
            try FaultTests.empty(fixture.directory)
            try fixture.files.write(FaultTests.old, to: path, class: .complete)
        } _: { files in
            try files.write(content, to: path)
            guard try files.contents(of: path) == content else { throw Broken(description: "other content") }
        } check: { number, error in
            let found = try fixture.files.contents(of: path)
            guard found == FaultTests.old || found == content else { throw Broken(description: "\(number): neither") }
            try Self.expectNoTemporaryName(fixture.directory, number)
        }
    }

    @Test(arguments: [false, true])
    func protectingMayBeInterrupted(unlocksAtOnce: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let keys = InterruptibleKeys(fixture.keybag)
        let runs = try Self.lockingAtEveryUse(keys, unlocksAtOnce: unlocksAtOnce) {
            try FaultTests.empty(fixture.directory)
            try fixture.directory.write(FaultTests.new, to: "files/file")
        } _: { files in
            try FaultTests.convert(files, path, .protect(.complete))
        } check: { number, error in
            guard try FaultTests.found(fixture.files, path) == FaultTests.new else {
                throw Broken(description: "lock \(number): lost")
            }
            let state = try FileInspection.inspect(path).state
            guard (error == nil) == (state == .protected) else { throw Broken(description: "\(number): \(state)") }
            try Self.expectNoTemporaryName(fixture.directory, number)
            try FaultTests.convert(fixture.files, path, .protect(.complete))
        }
        #expect(runs > 3)
    }

    /// Raised to class A through these keys, lowered again, and created: each at every use.
    @Test func classChangesAndCreationMayBeInterrupted() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let keys = InterruptibleKeys(fixture.keybag)
        for wanted in [ProtectionClass.complete, .completeUntilFirstUserAuthentication] {
            let before: ProtectionClass = wanted == .complete ? .completeUntilFirstUserAuthentication : .complete
            let runs = try Self.lockingAtEveryUse(keys) {
                try FaultTests.empty(fixture.directory)
                try fixture.files.write(FaultTests.old, to: path, class: before)
            } _: { files in
                _ = try files.setProtectionClass(of: path, to: wanted)
            } check: { number, error in
                guard try fixture.files.contents(of: path) == FaultTests.old else { throw Broken(description: "lost") }
                _ = try ProtectedFileSystem(keys: keys).setProtectionClass(of: path, to: wanted)
                guard try fixture.files.protectionClass(of: path) == wanted else {
                    throw Broken(description: "lock \(number): the change cannot be made again")
                }
            }
            #expect(runs > 0)
        }
        let runs = try Self.lockingAtEveryUse(keys) {
            try FaultTests.empty(fixture.directory)
        } _: { files in
            try files.open(path, for: .creating(.complete)).close()
        } check: { number, error in
            if code({ try fixture.files.contents(of: path) }) == .system(ErrorNumber.noEntry) {
                guard error != nil else { throw Broken(description: "promised, but not there") }
                try fixture.files.open(path, for: .creating(.complete)).close()
            }
            guard try fixture.files.contents(of: path).isEmpty else { throw Broken(description: "not empty") }
            try Self.expectNoTemporaryName(fixture.directory, number)
        }
        #expect(runs > 2)
    }
}
