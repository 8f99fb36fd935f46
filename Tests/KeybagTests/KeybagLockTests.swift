import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Keybag

@Suite struct KeybagLockTests {
    private func unlocked() throws -> (KeybagFixture, Keybag) {
        let fixture = try KeybagFixture()
        return (fixture, try fixture.create())
    }

    /// All events so far.
    private func collect(_ stream: AsyncStream<LockEvent>, _ count: Int) async -> [LockEvent] {
        var events: [LockEvent] = []
        var iterator = stream.makeAsyncIterator()
        while events.count < count, let event = await iterator.next() { events.append(event) }
        return events
    }

    // MARK: Grace

    @Test(arguments: LockReason.allCases)
    func onlyAutomaticLocksHaveAGracePeriod(reason: LockReason) throws {
        let (fixture, keybag) = try unlocked()
        let isAutomatic = reason == .screenLock || reason == .idle
        #expect(try keybag.lock(reason: reason) == (isAutomatic ? .graceRunning(seconds: 10) : .locked))
        #expect(keybag.lockState == (isAutomatic ? .unlocked : .locked))
        #expect(keybag.nextDeadline == (isAutomatic ? fixture.clock.secondsSinceBoot + 10 : nil))
        fixture.clock.advance(by: 9.5)
        #expect(!keybag.tick())
        #expect(keybag.lockState == (isAutomatic ? .unlocked : .locked))
        fixture.clock.advance(by: 0.5)
        #expect(keybag.tick() == isAutomatic)
        #expect(keybag.lockState == .locked)
        #expect(!keybag.tick() && keybag.nextDeadline == nil)
    }

    @Test func aSecondAutomaticLockDoesNotProlongTheGracePeriod() throws {
        let (fixture, keybag) = try unlocked()
        _ = try keybag.lock(reason: .idle)
        fixture.clock.advance(by: 6)
        #expect(try keybag.lock(reason: .screenLock) == .graceRunning(seconds: 4))
        fixture.clock.advance(by: 1)
        #expect(try keybag.lock(reason: .command) == .locked)
    }

    @Test func aGracePeriodOfNothingLocksAtOnce() throws {
        let (fixture, keybag) = try unlocked()
        defer { withExtendedLifetime(fixture) {} }
        keybag.settings.gracePeriod = 0
        #expect(try keybag.lock(reason: .idle) == .locked)
        #expect(keybag.lockState == .locked)
    }

    @Test func anUnlockEndsTheGracePeriod() throws {
        let (fixture, keybag) = try unlocked()
        _ = try keybag.lock(reason: .idle)
        #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode)
        #expect(keybag.nextDeadline != nil)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        fixture.clock.advance(by: 100)
        #expect(keybag.lockState == .unlocked && keybag.nextDeadline == nil)
    }

    /// A host that never calls `tick` gets no more than the grace period.
    @Test func keysEndWithTheGracePeriodWithoutATick() throws {
        let (fixture, keybag) = try unlocked()
        let file = try keybag.makeFileKey(for: .complete, flags: [])
        _ = try keybag.lock(reason: .idle)
        try file.lease.withKey { _ in }
        fixture.clock.advance(by: 10)
        #expect(code { try file.lease.withKey { _ in } } == .locked(.complete))
        #expect(keybag.lockState == .locked)
        let (second, other) = try unlocked()
        _ = try other.lock(reason: .idle)
        second.clock.advance(by: 10)
        #expect(code { try other.makeFileKey(for: .complete, flags: []) } == .locked(.complete))
    }

    // MARK: Events

    @Test func eventsComeInOrderToEveryListener() async throws {
        let (fixture, keybag) = try unlocked()
        let first = keybag.lockEvents(), second = keybag.lockEvents()
        _ = try keybag.lock(reason: .command)
        _ = try keybag.lock(reason: .command)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        let late = keybag.lockEvents()
        _ = try keybag.lock(reason: .screenLock)
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        _ = try keybag.lock(reason: .screenLock)
        fixture.clock.advance(by: 10)
        keybag.tick()
        let expected: [LockEvent] = [
            .willLock(grace: 0), .didLock, .didUnlock, .willLock(grace: 10), .didUnlock, .willLock(grace: 10), .didLock,
        ]
        #expect(await collect(first, 7) == expected)
        #expect(await collect(second, 7) == expected)
        #expect(await collect(late, 4) == Array(expected.suffix(4)))
    }

    @Test func streamsEndWithTheKeybag() async throws {
        let stream: AsyncStream<LockEvent>
        do {
            let (fixture, keybag) = try unlocked()
            defer { withExtendedLifetime(fixture) {} }
            stream = keybag.lockEvents()
            _ = try keybag.lock(reason: .command)
        }
        #expect(await collect(stream, 100) == [.willLock(grace: 0), .didLock])
    }

    // MARK: A lock during an unlock (LK-10)

    @Test(arguments: [LockReason.command, .idle])
    func aLockThatComesDuringAnUnlockWins(reason: LockReason) throws {
        let fixture = try KeybagFixture()
        try fixture.create()
        let locking = Mutex<(@Sendable () -> Void)?>(nil)
        // The try is written down just before the passcode is worked on: there the lock comes in.
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.operation == .synchronizeData { locking.withLock { $0 }?() }
                return .proceed
            })
        let keybag = try fixture.open(system: system)
        locking.withLock { $0 = { _ = try? keybag.lock(reason: reason) } }
        #expect(code { try keybag.unlock(passcode: secret(KeybagFixture.passcode)) } == .cancelled)
        #expect(keybag.lockState == .beforeFirstUnlock)
        #expect(!keybag.canUnwrap(.complete))
        locking.withLock { $0 = nil }
        try keybag.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(keybag.lockState == .unlocked)
    }

    // MARK: What a lock takes

    @Test func tenThousandOpenFilesLoseTheirKeys() throws {
        let (fixture, keybag) = try unlocked()
        defer { withExtendedLifetime(fixture) {} }
        let before = SecretMemory.slotsInUse
        var leases = try (0..<10_000).map { _ in try keybag.makeFileKey(for: .complete, flags: []).lease }
        #expect(keybag.manager.loanCount == 10_000)
        _ = try keybag.lock(reason: .command)
        #expect(keybag.manager.loanCount == 0)
        for lease in leases where code({ try lease.withKey { _ in } }) != .locked(.complete) {
            Issue.record("a key lives on")
        }
        leases = []
        // Other tests use secrets meanwhile, but not by the thousand.
        #expect(SecretMemory.slotsInUse < before + 9_000)
    }

    @Test func aLeaseThatIsLetGoIsForgotten() throws {
        let (fixture, keybag) = try unlocked()
        defer { withExtendedLifetime(fixture) {} }
        for _ in 0..<100 { _ = try keybag.makeFileKey(for: .complete, flags: []) }
        #expect(keybag.manager.loanCount == 0)
    }

    /// Whoever is inside when the lock comes finishes with a whole key; the lock waits, and nobody comes in any more.
    @Test func aLockWaitsForWhoIsInside() throws {
        let (fixture, keybag) = try unlocked()
        defer { withExtendedLifetime(fixture) {} }
        let lease = try keybag.makeFileKey(for: .complete, flags: []).lease
        let inside = Atomic<Int>(0), zeros = Atomic<Int>(0), worked = Atomic<Int>(0), refused = Atomic<Int>(0)
        let isLocked = Atomic<Bool>(false), lateSuccess = Atomic<Int>(0)
        inThreads(4) { index in
            if index == 0 {
                while worked.load(ordering: .relaxed) < 300 { sched_yield() }
                _ = try? keybag.lock(reason: .command)
                if inside.load(ordering: .sequentiallyConsistent) != 0 { lateSuccess.add(1, ordering: .relaxed) }
                isLocked.store(true, ordering: .sequentiallyConsistent)
                return
            }
            while refused.load(ordering: .relaxed) < 100 {
                let wasLocked = isLocked.load(ordering: .sequentiallyConsistent)
                do {
                    try lease.withKey { key in
                        inside.add(1, ordering: .sequentiallyConsistent)
                        if key.bytes.isAllZero { zeros.add(1, ordering: .relaxed) }
                        inside.subtract(1, ordering: .sequentiallyConsistent)
                    }
                    worked.add(1, ordering: .relaxed)
                    if wasLocked { lateSuccess.add(1, ordering: .relaxed) }
                } catch { refused.add(1, ordering: .relaxed) }
            }
        }
        #expect(zeros.load(ordering: .relaxed) == 0)
        #expect(lateSuccess.load(ordering: .relaxed) == 0)
    }

    @Test func leasesMayBeUsedInsideEachOther() throws {
        let (fixture, keybag) = try unlocked()
        defer { withExtendedLifetime(fixture) {} }
        let one = try keybag.makeFileKey(for: .complete, flags: []),
            two = try keybag.makeFileKey(for: .complete, flags: [])
        let same = try one.lease.withKey { one in
            try two.lease.withKey { two in
                _ = try keybag.makeFileKey(for: .complete, flags: [])
                return one.bytes.equals(two.bytes)
            }
        }
        #expect(!same)
    }

    /// A thread that uses a key and asks for something that would have to wait for itself is told so.
    @Test func nothingWaitsForItselfInsideALease() throws {
        let (fixture, keybag) = try unlocked()
        let lease = try keybag.makeFileKey(for: .complete, flags: []).lease
        let record = try keybag.makeFileKey(for: .complete, flags: []).record
        let other = try fixture.open()
        try other.unlock(passcode: secret(KeybagFixture.passcode))
        try other.rotate([.fileComplete])
        let newer = try other.makeFileKey(for: .complete, flags: []).record
        try lease.withKey { _ in
            #expect(code { try keybag.lock(reason: .command) } == .busy)
            #expect(code { try keybag.unlock(passcode: secret(KeybagFixture.passcode)) } == .busy)
            #expect(code { try keybag.rotate([.fileNone]) } == .busy)
            #expect(code { try keybag.unwrap(newer) } == .busy)
            _ = try keybag.unwrap(record)
            _ = keybag.lockEvents()
            #expect(keybag.lockState == .unlocked)
        }
        _ = try keybag.unwrap(newer)
        _ = try keybag.lock(reason: .idle)
        try lease.withKey { _ in
            fixture.clock.advance(by: 10)
            #expect(keybag.lockState == .locked && !keybag.canUnwrap(.complete) && !keybag.tick())
            #expect(code { try keybag.unwrap(record) } == .locked(.complete))
            #expect(code { try lease.withKey { _ in } } == .locked(.complete))
        }
        #expect(keybag.manager.loanCount == 1)
        #expect(keybag.lockState == .locked)
        #expect(keybag.manager.loanCount == 0)
    }

    // MARK: Other holders

    @Test func aLockNamesOtherHoldersAndClaimsNoSuccess() throws {
        let (fixture, keybag) = try unlocked()
        let other = try fixture.open()
        try other.unlock(passcode: secret(KeybagFixture.passcode))
        #expect(try keybag.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
        #expect(keybag.lockState == .locked)
        #expect(try keybag.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
        #expect(try other.lock(reason: .command) == .locked)
        #expect(try keybag.lock(reason: .command) == .locked)
    }

    @Test func aHolderInAnotherProcessIsNamedUntilItEnds() async throws {
        let fixture = try KeybagFixture(.disk)
        let keybag = try fixture.create()
        _ = try keybag.lock(reason: .command)
        let path = fixture.directory.path.description
        await #expect(processExitsWith: .success) { [path = path as String] in
            let home = KeybagHome(directory: try #require(FilePath(path)).appending("home"))
            let holder = try Keybag.open(home)
            try holder.unlock(passcode: secret(KeybagFixture.passcode))
            // Asked by a keybag that holds nothing, which is what another process's is.
            let asker = try Keybag.open(home)
            #expect(try asker.lock(reason: .command) == .incomplete(holders: ["process \(getpid())"]))
        }
        #expect(try keybag.lock(reason: .command) == .locked)
    }

    /// A child that was forked while keys were held has the same open file, but holds no keys.
    @Test func aForkedChildDoesNotPassForAHolder() async {
        await #expect(processExitsWith: .success) {
            let fixture = try KeybagFixture()
            let keybag = try fixture.create()
            var ends: [Int32] = [0, 0]
            guard pipe(&ends) == 0 else { throw KeybagCreateTests.Broken("no pipe") }
            let child = fork()
            if child == 0 {
                var byte: UInt8 = 0
                _ = read(ends[0], &byte, 1)
                _exit(0)
            }
            #expect(try keybag.lock(reason: .command) == .locked)
            var byte: UInt8 = 1
            #expect(write(ends[1], &byte, 1) == 1)
            var status: Int32 = 0
            #expect(waitpid(child, &status, 0) == child && status == 0)
        }
    }

    @Test func severalHoldersAreAllFound() throws {
        let directory = try TemporaryDirectory(.memory)
        let lock = HolderLock(path: directory.path.appending("holders"), system: LinuxSystemCalls.shared)
        try lock.create()
        let numbers: [Int64] = [1, 2, 4095, 65_536, HolderLock.processLimit - 1]
        let file = HeldDescriptor(try LinuxSystemCalls.shared.openFile(lock.path, [.read]))
        for number in numbers {
            #expect(try LinuxSystemCalls.shared.lock(file.number, .shared, start: number, count: 1, wait: false))
        }
        #expect(lock.holders() == numbers.map { "process \($0)" })
        // Somebody else looks at every step of the search: that is not seen as one more holder.
        let seen = Mutex<Set<[String]>>([])
        let watched = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                guard call.operation == .lock || call.operation == .isLocked else { return }
                let holders = lock.holders()
                seen.withLock { _ = $0.insert(holders) }
            })
        #expect(HolderLock(path: lock.path, system: watched).holders() == numbers.map { "process \($0)" })
        #expect(seen.withLock { $0 } == [numbers.map { "process \($0)" }])
    }

    /// A mark is held by all who share its open file, whatever becomes of the process that made it.
    @Test func aMarkStaysUntilTheLastOfThoseWhoShareItLetsGo() throws {
        let directory = try TemporaryDirectory(.memory)
        let lock = HolderLock(path: directory.path.appending("holders"), system: LinuxSystemCalls.shared)
        let name = HolderLock.borrowersName(Int64(getpid()))
        var mark: HolderMark? = try lock.mark()
        #expect(lock.holders() == [])
        try mark?.hold()
        try mark?.hold()
        #expect(lock.holders() == [name])
        // While that process holds keys itself, it is named as such.
        var holder = lock.hold()
        #expect(holder != nil)
        #expect(lock.holders() == [HolderLock.name(Int64(getpid()))])
        holder = nil
        #expect(lock.holders() == [name])
        try mark?.letGo()
        #expect(lock.holders() == [])
        let shared = try #require(try mark?.duplicate())
        try mark?.hold()
        mark = nil
        #expect(lock.holders().last == name)
        try LinuxSystemCalls.shared.close(shared)
        #expect(!lock.holders().contains(name))
    }

    // MARK: Memory

    @Test func afterALockNoGuardedKeyIsInMemory() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read, so the positive control needs this one.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let fixture = try KeybagFixture()
            try fixture.create(recoveryKey: try RecoveryKey.generate())
            let keybag = try fixture.open()
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            // Used, so that whatever copies use makes are made.
            let files = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []) }
            for file in files { _ = try keybag.unwrap(file.record) }
            try keybag.rotate([.fileComplete])
            let guarded: [KeyClass] = [
                .fileComplete, .fileCompleteUnlessOpen, .keychainUnlocked, .keychainUnlockedThisDevice,
                .keychainPasscodeThisDevice,
            ]
            var scans: [(String, MemoryScan)] = try keybag.manager.withGuarded(nil) { (guardedKeys, userKey) in
                #expect(Set(guardedKeys.table.newest.keys) == Set(guarded))
                return guardedKeys.table.keys.map {
                    ("\($0.key.keyClass.name) \($0.key.generation)", MemoryScan(for: $0.value.bytes))
                }
                    + [("user key", MemoryScan(for: userKey.key.bytes))]
            }
            #expect(scans.count == 7)
            scans.append(("class A file key", try files[0].lease.withKey { MemoryScan(for: $0.bytes) }))
            for (name, scan) in scans {
                #expect(try scan.copies() >= 1, "\(name) is not found while unlocked: the scan is blind")
                #expect(try scan.copies() == 1, "\(name) is in memory more than once")
            }
            let lasting = try files[2].lease.withKey { MemoryScan(for: $0.bytes) }
            #expect(try keybag.lock(reason: .command) == .locked)
            for (name, scan) in scans { #expect(try scan.copies() == 0, "\(name) is still there") }
            #expect(try lasting.copies() == 1)
            #expect(files.count == 4)
            try keybag.unlock(passcode: secret(KeybagFixture.passcode))
            for (name, scan) in scans.prefix(7) { #expect(try scan.copies() == 1, "\(name)") }
        }
    }

    @Test func nothingIsLeftOfACancelledOrWrongUnlock() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let fixture = try KeybagFixture()
            let keybag = try fixture.create()
            let scans = try keybag.manager.withGuarded(nil) { (guarded, userKey) in
                guarded.table.keys.map { MemoryScan(for: $0.value.bytes) } + [MemoryScan(for: userKey.key.bytes)]
            }
            _ = try keybag.lock(reason: .command)
            #expect(code { try keybag.unlock(passcode: secret("wrong")) } == .wrongPasscode)
            try keybag.changePasscode(
                from: secret(KeybagFixture.passcode), to: secret("new"), cost: .explicit(KeybagFixture.cost))
            for scan in scans { #expect(try scan.copies() == 0) }
        }
    }

    @Test func aForkedChildIsRefusedRatherThanStopped() async {
        await #expect(processExitsWith: .success) {
            let fixture = try KeybagFixture()
            let keybag = try fixture.create()
            let lease = try keybag.makeFileKey(for: .complete, flags: []).lease
            let lasting = try keybag.makeFileKey(for: .none, flags: []).lease
            let status = inForkedChild {
                code { try lease.withKey { _ in } } == .unsupported
                    && code { try lasting.withKey { _ in } } == .unsupported
                    && code { try keybag.makeFileKey(for: .complete, flags: []) } == .unsupported
            }
            #expect(status == 0)
            #expect(try lease.withKey { key in !key.bytes.isAllZero })
        }
    }
}

/// The status of a child that ran `body` in a copy of this process: 0 when it gave true.
private func inForkedChild(_ body: () -> Bool) -> Int32 {
    let child = fork()
    if child == 0 { _exit(body() ? 0 : 1) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) == -1, errno == EINTR {}
    return status
}
