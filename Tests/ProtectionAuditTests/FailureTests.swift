import FileProtection
import ProtectionAudit
import Synchronization
import TestSupport
import Testing

/// What a run said, for a check behind it.
private final class RunHolder: Sendable {
    let run = Mutex<AuditRun?>(nil)
}

@Suite struct FailureTests {
    private static let accessDenied: Int32 = 13

    /// Calls on one name fail.
    private func failing(
        _ operation: SystemOperation, _ name: FilePath, _ errorNumber: Int32
    ) -> any SystemCalls {
        InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.operation == operation, call.path == name { throw call.failure(errorNumber) }
                return .proceed
            })
    }

    @Test func whatCannotBeReadIsNamedWithCallAndReasonAndTheRestIsWalked() throws {
        let fixture = try AuditFixture()
        try fixture.shell("mkdir closed open; touch closed/x open/y z")
        let run = try AuditRun([fixture.root], Audit.Options(), failing(.open, "closed", Self.accessDenied))
        #expect(run.failures.map(\.path) == [fixture.path("closed")])
        #expect(run.failures.first?.code == .system(Self.accessDenied))
        // Field report AU-06: the call that failed and the system's own words, without a debugging option.
        #expect(run.failures.first?.message == "openat failed: Permission denied")
        #expect(run.summary.failed == 1)
        #expect(Set(run.files(below: fixture.root).keys) == [".", "open", "open/y", "z"])
        #expect(run.lines.contains { $0.contains("\"error\":") && $0.contains("closed") })
    }

    @Test(arguments: [SystemOperation.attributeOfPath, .statusOfPath])
    func aFileThatCannotBeLookedAtIsAFailureAndNoFinding(operation: SystemOperation) throws {
        let fixture = try AuditFixture()
        try fixture.protected("closed")
        try fixture.protected("open")
        let run = try AuditRun([fixture.root], Audit.Options(), failing(operation, "closed", Self.accessDenied))
        #expect(run.failures.map(\.path) == [fixture.path("closed")])
        #expect(run.summary.violations == 0)
        #expect(run.summary.states[.protected]?.files == 1)
    }

    @Test func aPlainFileThatCannotBeOpenedIsAFailure() throws {
        let fixture = try AuditFixture()
        try fixture.plain("closed")
        try fixture.plain("open")
        let run = try AuditRun([fixture.root], Audit.Options(), failing(.open, "closed", Self.accessDenied))
        #expect(run.failures.map(\.path) == [fixture.path("closed")])
        #expect(run.summary.violations == 1)
    }

    @Test(arguments: [SystemOperation.attributeOfPath, .statusOfPath, .open])
    func whatVanishesMeanwhileIsNoFailure(operation: SystemOperation) throws {
        let fixture = try AuditFixture()
        try fixture.plain("gone")
        try fixture.plain("here")
        let run = try AuditRun([fixture.root], Audit.Options(), failing(operation, "gone", ErrorNumber.noEntry))
        #expect(run.failures.isEmpty)
        #expect(run.skipped(below: fixture.root) == ["gone": .vanished])
        #expect(run.summary.violations == 1)
    }

    /// Field report XA-07: said at once, and not for each file.
    @Test func aFileSystemWithoutAttributesIsRefusedOnce() throws {
        let fixture = try AuditFixture()
        for name in ["a", "b", "c"] as [FilePath] { try fixture.plain(name) }
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.attribute != nil { throw call.failure(ErrorNumber.notSupported) }
                return .proceed
            })
        let run = try AuditRun([fixture.root], Audit.Options(), system)
        #expect(run.failures.map(\.path) == [fixture.root])
        #expect(run.failures.first?.code == .unsupported)
        #expect(run.summary.states.isEmpty)
    }

    /// Whatever call fails: nothing is left open, and what was not seen is counted as such.
    @Test func noFailureIsPassedOver() throws {
        let fixture = try AuditFixture()
        try fixture.shell("mkdir -p a/b; echo some plain text > a/b/plain; touch empty")
        try fixture.protected("a/good")
        try fixture.protected("a/lost")
        try fixture.setAttribute("a/lost", nil)
        var options = Audit.Options()
        options.threads = 1
        for comparesHeaders in [false, true] {
            options.comparesHeaders = comparesHeaders
            let expected = try AuditRun([fixture.root], options).text
            let runs = try failingEveryCall(
                errorNumbers: [5, Self.accessDenied], matching: { $0.operation != .close },
                setUp: { RunHolder() },
                { result, system in
                    let run = try AuditRun([fixture.root], options, system)
                    result.run.withLock { $0 = run }
                },
                check: { result, failure, error in
                    #expect(error == nil, "\(failure)")
                    guard let run = result.run.withLock({ $0 }) else { return }
                    // Unless it was a call whose answer the walk can do without.
                    if run.summary.failed == 0 { #expect(run.text == expected, "\(failure)") }
                    #expect(UInt64(run.failures.count) == run.summary.failed, "\(failure)")
                    #expect(run.summary.states[.protected]?.files ?? 0 <= 2, "\(failure)")
                })
            #expect(runs > 40)
        }
    }

    @Test func aReaderThatGoesAwayEndsTheWalk() throws {
        let fixture = try AuditFixture()
        try fixture.shell("mkdir many; for i in $(seq 1 5000); do : > many/$i; done")
        let pieces = Mutex(0)
        _ = try Audit().run([fixture.root], format: CollectingFormat.json) { _ in
            pieces.withLock { $0 += 1 }
            return false
        }
        // The one that was refused, and the totals that nobody can be told.
        #expect(pieces.withLock { $0 } <= 2)
    }

    @Test func cancellingThrows() throws {
        let fixture = try AuditFixture()
        try fixture.shell("for i in $(seq 1 2000); do : > $i; done")
        let asked = Mutex(0)
        let audit = Audit(
            isCancelled: {
                asked.withLock {
                    $0 += 1
                    return $0 > 3
                }
            })
        do {
            _ = try audit.run([fixture.root], format: CollectingFormat.json) { _ in true }
            Issue.record("not cancelled")
        } catch {
            #expect(error.code == .cancelled)
        }
    }
}
