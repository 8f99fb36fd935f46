import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Keybag

/// A file key that was lent for a class whose keys outlive the lock, when the file becomes class A.
@Suite struct RaisedClassTests {
    /// The classes that a file goes through before it is raised.
    static let paths: [[ProtectionClass]] = {
        let lasting = ProtectionClass.allCases.filter { $0 != .complete }
        return lasting.map { [$0] } + lasting.flatMap { first in lasting.map { [first, $0] } }
            + [[.none, .complete, .none], [.completeUnlessOpen, .none, .completeUntilFirstUserAuthentication]]
    }()

    @Test(arguments: paths)
    func aLockTakesTheKeyOfAFileThatWasRaised(path: [ProtectionClass]) throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let file = try keybag.makeFileKey(for: path[0], flags: [])
        let other = try keybag.makeFileKey(for: path[0], flags: []).lease
        // Somebody borrowed it at every step, and does nothing with it.
        var leases = [file.lease, try keybag.unwrap(file.record)]
        var record = file.record
        for next in path.dropFirst() {
            record = try keybag.rewrap(record, to: next, flags: [])
            leases.append(try keybag.unwrap(record))
        }
        let raised = try keybag.rewrap(record, to: .complete, flags: [])
        for lease in leases {
            #expect(lease.protectionClass == .complete)
            #expect(try lease.isWhole())
        }
        #expect(other.protectionClass == path[0])
        #expect(try keybag.lock(reason: .command) == .locked)
        for lease in leases { #expect(code { try lease.withKey { _ in } } == .locked(.complete)) }
        #expect(try other.isWhole())
        #expect(keybag.manager.loanCount == 0 && keybag.manager.lastingLoanCount == 1)
        #expect(code { try keybag.unwrap(raised) } == .locked(.complete))
        leases = []
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(try keybag.unwrap(raised).isWhole())
    }

    @Test func leasesThatAreLetGoAreForgotten() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        for protectionClass in ProtectionClass.allCases {
            let file = try keybag.makeFileKey(for: protectionClass, flags: [])
            _ = try keybag.unwrap(file.record)
            _ = try keybag.rewrap(file.record, to: .complete, flags: [])
        }
        #expect(keybag.manager.loanCount == 0 && keybag.manager.lastingLoanCount == 0)
    }

    /// What began before the raise finishes with a whole key, and the lock says that it is not through.
    @Test func aLockNamesAnOperationThatBeganBeforeTheRaise() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let file = try keybag.makeFileKey(for: .none, flags: [])
        try file.lease.withKey { key in
            _ = try keybag.rewrap(file.record, to: .complete, flags: [])
            for _ in 0..<2 {
                #expect(try keybag.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
            }
            let isWhole = !key.bytes.isAllZero
            #expect(isWhole)
            #expect(code { try file.lease.withKey { _ in } } == .locked(.complete))
        }
        #expect(try keybag.lock(reason: .command) == .locked)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(code { try file.lease.withKey { _ in } } == .locked(.complete))
    }

    @Test func raisesAndLocksLeaveUsersWholeKeysOrNone() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let wrong = Atomic<Int>(0)
        for _ in 0..<20 {
            let file = try keybag.makeFileKey(for: .none, flags: [])
            let used = Atomic<Int>(0), isLocked = Atomic<Bool>(false)
            inThreads(3) { index in
                if index == 0 {
                    while used.load(ordering: .relaxed) < 10 { sched_yield() }
                    guard (try? keybag.rewrap(file.record, to: .complete, flags: [])) != nil else { return }
                    while case .incomplete = try? keybag.lock(reason: .command) { sched_yield() }
                    isLocked.store(true, ordering: .sequentiallyConsistent)
                    return
                }
                while true {
                    let wasLocked = isLocked.load(ordering: .sequentiallyConsistent)
                    do {
                        try file.lease.withKey { key in
                            if key.bytes.isAllZero || wasLocked { wrong.add(1, ordering: .relaxed) }
                        }
                        used.add(1, ordering: .relaxed)
                        if wasLocked { return }
                    } catch { return }
                }
            }
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
    }

    @Test func afterALockNoRaisedFileKeyIsInMemory() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let fixture = try KeybagFixture()
            let keybag = try fixture.create()
            for protectionClass in ProtectionClass.allCases {
                let file = try keybag.makeFileKey(for: protectionClass, flags: [])
                let scan = try file.lease.withKey { MemoryScan(for: $0.bytes) }
                #expect(try scan.copies() == 1)
                _ = try keybag.rewrap(file.record, to: .complete, flags: [])
                #expect(try keybag.lock(reason: .command) == .locked)
                #expect(try scan.copies() == 0, "lent as \(protectionClass.name)")
                #expect(code { try file.lease.withKey { _ in } } == .locked(.complete))
                try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            }
        }
    }
}

extension FileKeyLease {
    fileprivate func isWhole() throws -> Bool { try withKey { !$0.bytes.isAllZero } }
}

/// Raising a class beside an agent that may have lent the key.
@Suite struct RaisedBesideAgentTests {
    /// Its loans are not this keybag's: a lock of the agent would leave the key to whoever borrowed it there.
    @Test func nothingIsRaisedBesideAnAgent() throws {
        let fixture = try KeybagFixture()
        let keybag = try fixture.create()
        let system = LinuxSystemCalls.shared
        let records = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        let path = fixture.home.directory.appending("state").appending(KeybagHome.agentLockName)
        let file = try system.openFile(path, [.read, .write, .create])
        for isRunning in [true, false] {
            let lock: RangeLock = isRunning ? .exclusive : .none
            #expect(
                try system.lock(file.number, lock, start: KeybagHome.agentLockByte, count: 1, wait: false))
            for record in records {
                let isRaise = record.protectionClass != .complete
                #expect(
                    code { try keybag.rewrap(record, to: .complete, flags: []) } == (isRunning && isRaise ? .busy : nil)
                )
                for target in ProtectionClass.allCases where target != .complete {
                    #expect(code { try keybag.rewrap(record, to: target, flags: []) } == nil)
                }
            }
        }
    }
}
