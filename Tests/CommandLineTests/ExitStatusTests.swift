import ProtectionModel
import Testing

@testable import candado

@Suite("Exit status")
struct ExitStatusTests {
    static let identifier = KeybagIdentifier(bytes: [UInt8](repeating: 7, count: 16))

    static var table: [(ProtectionError.Code, Int32)] {
        var rows: [(ProtectionError.Code, Int32)] = [
            (.locked(nil), 10), (.wrongPasscode, 11), (.tooManyTries(retryAfter: 60), 11), (.noPasscodeSet, 1),
            (.noPasscodeSource, 12), (.notProtected, 13), (.recordMissing, 13), (.needsNewerVersion, 15),
            (.unsupported, 15), (.noKeybag, 1), (.alreadyExists, 1), (.otherClass(.complete), 1), (.busy, 1),
            (.invalidArgument, 64), (.cancelled, 1), (.secretMemory, 1), (.cryptography, 1), (.system(2), 1),
            (.system(28), 1), (.system(95), 15),
        ]
        rows += ProtectionClass.allCases.map { (.locked($0), 10) }
        rows += ProtectionError.Layer.allCases.map { (.damaged($0), 14) }
        if let identifier { rows.append((.foreignKeybag(identifier), 1)) }
        return rows
    }

    @Test("Each kind of error has the status of the contract")
    func codes() {
        for (code, status) in Self.table { #expect(ExitStatus(code).rawValue == status, "\(code)") }
    }

    @Test("Advice is a sentence without a full stop, on one line")
    func advice() {
        for (code, _) in Self.table {
            for hint in Hints.advice(for: code) {
                #expect(!hint.isEmpty && !hint.hasSuffix(".") && !hint.contains("\n"), "\(hint)")
            }
        }
        #expect(!Hints.advice(for: .locked(.complete)).isEmpty)
        #expect(!Hints.advice(for: .noPasscodeSource).isEmpty)
    }

    @Test("What is unsupported has advice that fits the reason, and none where there is no reason")
    func unsupported() {
        #expect(Hints.advice(for: ProtectionError(.unsupported, "x")).isEmpty)
        var all: Set<String> = []
        for reason in ProtectionError.Unsupported.allCases {
            let advice = Hints.advice(for: ProtectionError(.unsupported, "x", reason: reason))
            #expect(advice.count == 1)
            for hint in advice { #expect(!hint.isEmpty && !hint.hasSuffix(".") && !hint.contains("\n"), "\(hint)") }
            #expect(advice.contains { $0.contains("file system with user attributes") } == (reason == .fileSystem))
            all.formUnion(advice)
        }
        #expect(all.count == ProtectionError.Unsupported.allCases.count)
        // An error keeps its reason when it is given its path.
        #expect(ProtectionError(.unsupported, "x", reason: .hardLinks).at("p").reason == .hardLinks)
    }

    @Test("Waiting times are rounded up")
    func durations() {
        let rows: [(Double, String)] = [
            (0.2, "1 second"), (1, "1 second"), (60, "60 seconds"), (119.1, "2 minutes"), (121, "3 minutes"),
            (7200, "2 hours"), (.infinity, "0 seconds"), (-1, "0 seconds"),
        ]
        for (seconds, text) in rows { #expect(Hints.duration(seconds) == text) }
    }

    struct Run: Sendable {
        let done: Int
        let failures: [ExitStatus]
        let expected: ExitStatus
    }

    static let runs: [Run] = [
        Run(done: 0, failures: [], expected: .done),
        Run(done: 3, failures: [], expected: .done),
        Run(done: 0, failures: [.notProtected], expected: .notProtected),
        Run(done: 0, failures: [.notProtected, .notProtected], expected: .notProtected),
        Run(done: 0, failures: [.notProtected, .unsupported], expected: .failed),
        Run(done: 1, failures: [.notProtected], expected: .partlyDone),
        Run(done: 1, failures: [.locked], expected: .locked),
        Run(done: 1, failures: [.locked, .damaged, .failed], expected: .damaged),
        Run(done: 0, failures: [.locked, .failed], expected: .locked),
        Run(done: 1, failures: [.violations], expected: .violations),
        Run(done: 1, failures: [.violations, .failed], expected: .partlyDone),
        Run(done: 0, failures: [.violations, .failed], expected: .partlyDone),
        Run(done: 1, failures: [.violations, .locked], expected: .locked),
        Run(done: 0, failures: [.partlyDone], expected: .partlyDone),
    ]

    @Test("Over many files: damaged before locked before partly done before violations", arguments: runs)
    func tally(_ run: Run) {
        for failures in [run.failures, run.failures.reversed()] {
            var tally = ExitTally()
            for _ in 0..<run.done { tally.countDone() }
            for failure in failures { tally.countFailure(failure) }
            #expect(tally.status == run.expected)
        }
    }
}
