import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// No failure ends in plaintext on the disk, in half a file, or in one that is taken for missing.
@Suite struct ClosedRuleTests {
    /// Every system call of a write fails in turn, and from there on all of them.
    @Test(arguments: [ENOSPC, EIO, EDQUOT], [true, false])
    func aWriteThatFailsLeavesTheFileAsItWas(_ errorNumber: Int32, _ isNew: Bool) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let keybag = try #require(fixture.protection.embeddedKeybag)
        func place() throws {
            if isNew {
                try? FileManager.default.removeItem(at: fixture.url("it"))
            } else {
                try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: .complete)
            }
        }
        /// Calls of which those fail that the write makes.
        func failing(_ plan: FailingCalls.Plan) throws -> (FailingCalls, FileProtection, Switch) {
            let isOn = Switch()
            let calls = FailingCalls(plan: plan, errorNumber: errorNumber) { _ in isOn.value.load(ordering: .relaxed) }
            let protection = try FileProtection.attach(keybag, system: calls.system)
            isOn.value.store(true, ordering: .relaxed)
            return (calls, protection, isOn)
        }
        try place()
        let (all, healthy, _) = try failing(.none)
        try fixture.run(healthy) {
            try WholeFileCall.sample.write(to: fixture.url("it"), options: .completeFileProtection)
        }
        #expect(all.count > 10)
        for plan in (1...all.count).flatMap({ [FailingCalls.Plan.only($0), .from($0)] }) {
            try place()
            let (failing, protection, isOn) = try failing(plan)
            let problem = fixture.run(protection) {
                failure { try WholeFileCall.sample.write(to: fixture.url("it"), options: .completeFileProtection) }
            }
            isOn.value.store(false, ordering: .relaxed)
            let name = Comment(rawValue: "\(plan): \(failing.failed), \(problem.map { "\($0)" } ?? "written")")
            for left in try fixture.names {
                #expect(!ProtectedGridTests.holds(try fixture.stored(FilePath(left) ?? ""), WholeFileCall.sample), name)
                if left == "it" { continue }
                #expect(failing.failed.contains("unlinkat"), name)
                try FileManager.default.removeItem(at: fixture.url(FilePath(left) ?? ""))
            }
            let content = try? fixture.protection.contents(of: fixture.path("it"))
            let isOld = isNew ? content == nil : content == Array("old".utf8)
            #expect(isOld || content == Array(WholeFileCall.sample), name)
            if problem == nil { #expect(content == Array(WholeFileCall.sample), name) }
            #expect(failing.leaked == [], name)
        }
    }

    @Test func aDamagedFileIsNeverTakenForContentNorReplaced() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Array("old content, old content".utf8), to: fixture.path("it"), class: .complete)
        var bytes = try fixture.stored("it")
        bytes[4096 + 5] ^= 1
        try fixture.replace("it", with: bytes)
        fixture.run {
            #expect(failure { try Data(contentsOf: fixture.url("it")) } == .cocoa(259, beneath: EBADMSG))
            #expect(failure { try String(contentsOf: fixture.url("it"), encoding: .isoLatin1) }?.code == 259)
            #expect(NSData(contentsOf: fixture.url("it")) == nil)
        }
        // Without any record, by its header alone.
        try fixture.directory.write(bytes, to: "files/other")
        fixture.run {
            #expect(failure { try Data(contentsOf: fixture.url("other")) } == .cocoa(259, beneath: EBADMSG))
            #expect(OutputStream(url: fixture.url("other"), append: true) == nil)
        }
        #expect(try fixture.stored("other") == bytes)
    }

    @Test func aFileWithoutAGoodHeaderIsNotReplaced() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Array("old content, old content".utf8), to: fixture.path("it"), class: .complete)
        var bytes = try fixture.stored("it")
        for slot in [0, 512] { bytes[slot + 30] ^= 1 }
        try fixture.replace("it", with: bytes)
        fixture.run {
            for call in WholeFileCall.ofOurs where call.effect == .writes {
                #expect((try? call.run(fixture.url("it"))) == nil, "\(call)")
            }
            #expect(failure { try Data(contentsOf: fixture.url("it")) } == .cocoa(259, beneath: EBADMSG))
        }
        #expect(try fixture.stored("it") == bytes)
    }

    @Test(arguments: [ProtectionError.Code.noKeybag, .agentNotReachable])
    func withoutKeysNothingIsWrittenWhereAClassIsAskedForOrInherited(_ code: ProtectionError.Code) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try FileManager.default.createDirectory(at: fixture.url("inner"), withIntermediateDirectories: false)
        try fixture.protection.setProtectionClass(.completeUnlessOpen, of: fixture.path("inner"))
        try fixture.protection.write(Array("old".utf8), to: fixture.path("old"), class: ProtectionClass.none)
        let before = try fixture.stored("old")
        try fixture.runWithoutKeys(code) {
            let options: [Data.WritingOptions] = [
                .noFileProtection, .completeFileProtection, .completeFileProtectionUnlessOpen,
                .completeFileProtectionUntilFirstUserAuthentication,
            ]
            for option in options {
                #expect(failure { try WholeFileCall.sample.write(to: fixture.url("it"), options: option) }?.code == 512)
            }
            for call in WholeFileCall.ofOurs where call.effect == .writes {
                #expect((try? call.run(fixture.url("inner/it"))) == nil, "\(call)")
                #expect((try? call.run(fixture.url("old"))) == nil, "\(call)")
            }
            #expect(failure { try Data(contentsOf: fixture.url("old")) }?.code == 256)
            #expect(!UIApplication.shared.isProtectedDataAvailable)
            // A plain file needs none.
            try WholeFileCall.sample.write(to: fixture.url("plain"))
            #expect(try Data(contentsOf: fixture.url("plain")) == WholeFileCall.sample)
        }
        #expect(try fixture.names == ["inner", "old", "plain"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.url("inner").path) == [])
        #expect(try fixture.stored("old") == before)
    }

    @Test func aRecordThatCannotBeReadOnADirectoryLetsNothingIn() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let directory = try LinuxSystemCalls.shared.openFile(fixture.path("."), [.read, .directory])
        try LinuxSystemCalls.shared.setAttribute(
            KeyRecord.attributeName, of: directory.number, to: Array("9Z?".utf8), replacing: .allowed)
        fixture.run {
            for call in WholeFileCall.ofOurs where call.effect == .writes {
                #expect((try? call.run(fixture.url("it"))) == nil, "\(call)")
            }
        }
        #expect(try fixture.names == [])
    }

    @Test func anotherKeybagsFileIsNeitherReadNorReplaced() throws {
        let (fixture, other) = (try DataFixture(), try DataFixture())
        try fixture.unlock()
        try other.unlock()
        try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: .complete)
        let before = try fixture.stored("it")
        fixture.run(other.protection) {
            #expect(failure { try Data(contentsOf: fixture.url("it")) } == .cocoa(256, beneath: ENOKEY))
            for call in WholeFileCall.ofOurs where call.effect == .writes {
                #expect((try? call.run(fixture.url("it"))) == nil, "\(call)")
            }
        }
        #expect(try fixture.stored("it") == before)
    }

    /// A lock that comes while a long read is under way: either it is whole, or it is locked.
    @Test func aReadThatALockMeetsIsWholeOrLocked() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let data = Data(repeating: 7, count: 4_000_000)
        try fixture.run { try data.write(to: fixture.url("it"), options: .completeFileProtection) }
        let owner = try fixture.owner(.unlocked)
        let outcomes = Mutex<[Result<Data, any Error>]>([])
        let reader = Thread {
            fixture.run(owner) {
                for _ in 0..<20 {
                    let result = Result { try Data(contentsOf: fixture.url("it")) }
                    outcomes.withLock { $0.append(result) }
                }
            }
        }
        reader.start()
        while outcomes.withLock({ $0.isEmpty }) { sched_yield() }
        _ = try? owner.lock()
        let after = fixture.run(owner) { failure { try Data(contentsOf: fixture.url("it")) } }
        #expect(after == .lockedReading)
        while outcomes.withLock({ $0.count }) < 20 { sched_yield() }
        for outcome in outcomes.withLock({ $0 }) {
            switch outcome {
            case .success(let read): #expect(read == data)
            case .failure(let error): #expect(Failure(error) == .lockedReading)
            }
        }
    }
}

extension DataFixture {
    /// Puts bytes in the place of a file's, and keeps its record.
    func replace(_ name: FilePath, with bytes: [UInt8]) throws {
        let file = try LinuxSystemCalls.shared.openFile(path(name), [.write, .truncate])
        try bytes.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0) }
    }
}

/// True or false, for several threads.
final class Switch: Sendable {
    let value = Atomic(false)
}
