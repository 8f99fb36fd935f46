import FileProtection
import ProtectionAudit
import TestSupport
import Testing

/// One row of the table: what a file is, and what the plain walk and the comparing walk must say of it.
struct StateRow: Sendable, CustomTestStringConvertible {
    let name: FilePath
    let make: @Sendable (AuditFixture, FilePath) throws -> Void
    let plain: Answer
    let comparing: Answer

    struct Answer: Sendable, Equatable {
        let state: FileInspection.State
        var protectionClass: ProtectionClass?
        var place: RecordPlace?
        var findings: AuditFindings = []
    }

    var testDescription: String { name.description }

    init(
        _ name: FilePath, _ plain: Answer, comparing: Answer? = nil,
        _ make: @escaping @Sendable (AuditFixture, FilePath) throws -> Void
    ) {
        self.name = name
        self.make = make
        self.plain = plain
        if let comparing {
            self.comparing = comparing
        } else {
            // Where nothing else is said, the two copies agree.
            var same = plain
            if same.place == .attribute, same.state != .directory { same.place = .both }
            self.comparing = same
        }
    }

    static let all: [StateRow] =
        ProtectionClass.allCases.map { protectionClass in
            StateRow(
                FilePath("good-\(protectionClass.name)") ?? ".",
                Answer(state: .protected, protectionClass: protectionClass, place: .attribute)
            ) { try $0.protected($1, protectionClass) }
        } + [
            StateRow("plain", Answer(state: .plain, findings: .plain)) { try $0.plain($1) },
            StateRow("plain-empty", Answer(state: .plain, findings: .plain)) { try $0.plain($1, "") },
            StateRow("plain-long", Answer(state: .plain, findings: .plain)) {
                try $0.plain($1, String(repeating: "long ", count: 5000))
            },
            StateRow("record-cut", Answer(state: .damaged, findings: .damaged)) {
                try $0.plain($1)
                try $0.setAttribute($1, Array("1A".utf8) + [UInt8](repeating: 0, count: 28))
            },
            StateRow("record-of-nothing", Answer(state: .damaged, findings: .damaged)) {
                try $0.plain($1, "")
                try $0.setAttribute($1, [])
            },
            StateRow("record-of-a-directory", Answer(state: .damaged, findings: .damaged)) {
                try $0.plain($1)
                try $0.setAttribute($1, Array("1A\0\0".utf8) + [UInt8](repeating: 7, count: 16))
            },
            StateRow("record-too-long", Answer(state: .damaged, findings: .damaged)) {
                try $0.plain($1)
                try $0.setAttribute($1, Array("1A".utf8) + [UInt8](repeating: 0, count: 700))
            },
            StateRow("emptied", Answer(state: .damaged, findings: .damaged)) {
                try $0.protected($1)
                try $0.truncate($1, to: 0)
            },
            StateRow("cut-in-the-header", Answer(state: .damaged, findings: .damaged)) {
                try $0.protected($1)
                try $0.truncate($1, to: 200)
            },
            StateRow(
                "no-container", Answer(state: .protected, protectionClass: .complete, place: .attribute),
                comparing: Answer(state: .damaged, findings: .damaged)
            ) {
                try $0.protected($1, .complete)
                try $0.overwrite($1, [UInt8](repeating: 0, count: 1024))
            },
            StateRow(
                "attribute-lost",
                Answer(
                    state: .protected, protectionClass: .completeUnlessOpen, place: .header, findings: .attributeLost)
            ) {
                try $0.protected($1, .completeUnlessOpen)
                try $0.setAttribute($1, nil)
            },
            StateRow(
                "attribute-garbled",
                Answer(
                    state: .protected, protectionClass: ProtectionClass.none, place: .header, findings: .attributeLost)
            ) {
                try $0.protected($1)
                try $0.setAttribute($1, Array("garbage".utf8))
            },
            StateRow("lost-both", Answer(state: .damaged, findings: .damaged)) {
                try $0.protected($1)
                try $0.setAttribute($1, nil)
                try $0.overwrite($1, at: 64, [UInt8](repeating: 0xFF, count: 60))
                try $0.overwrite($1, at: 512 + 64, [UInt8](repeating: 0xFF, count: 60))
            },
            StateRow(
                "foreign", Answer(state: .foreign, protectionClass: .complete, place: .attribute, findings: .foreign)
            ) { try $0.protected($1, .complete, foreign: true) },
            StateRow(
                "foreign-lost",
                Answer(
                    state: .foreign, protectionClass: .complete, place: .header, findings: [.foreign, .attributeLost])
            ) {
                try $0.protected($1, .complete, foreign: true)
                try $0.setAttribute($1, nil)
            },
            StateRow("newer-version", Answer(state: .unsupported)) {
                try $0.protected($1)
                try $0.setAttribute($1, [UInt8(ascii: "2")] + (try $0.attribute($1)).dropFirst())
            },
            StateRow("newer-class", Answer(state: .unsupported)) {
                try $0.plain($1)
                try $0.setAttribute($1, Array("1G".utf8) + [UInt8](repeating: 0, count: 58))
            },
            StateRow(
                "key-was-weaker",
                Answer(state: .protected, protectionClass: .complete, place: .attribute, findings: .keyWasWeaker)
            ) {
                try $0.protected($1)
                try $0.own.setProtectionClass(.complete, of: $0.path($1))
            },
            // Two good records that differ: those of two files, exchanged. The one that counts is not the question here.
            StateRow(
                "record-of-another", Answer(state: .protected, protectionClass: .complete, place: .attribute),
                comparing: Answer(
                    state: .protected, protectionClass: .complete, place: .attribute, findings: .recordDiffers)
            ) {
                try $0.protected("another", .complete)
                try $0.protected($1)
                try $0.setAttribute($1, try $0.attribute("another"))
                try $0.system.unlink($0.path("another"), in: currentDirectory)
            },
            StateRow(
                "record-of-a-weaker",
                Answer(state: .protected, protectionClass: ProtectionClass.none, place: .attribute),
                comparing: Answer(
                    state: .protected, protectionClass: .complete, place: .header, findings: .recordDiffers)
            ) {
                try $0.protected("weaker")
                try $0.protected($1, .complete)
                try $0.setAttribute($1, try $0.attribute("weaker"))
                try $0.system.unlink($0.path("weaker"), in: currentDirectory)
            },
            StateRow("directory", Answer(state: .directory)) { try $0.makeDirectory($1) },
            StateRow(
                "directory-with-class", Answer(state: .directory, protectionClass: .complete, place: .attribute)
            ) {
                try $0.makeDirectory($1)
                try $0.own.setProtectionClass(.complete, of: $0.path($1))
            },
            StateRow("directory-with-a-file-record", Answer(state: .damaged, findings: .damaged)) {
                try $0.makeDirectory($1)
                try $0.protected("donor")
                try $0.setAttribute($1, try $0.attribute("donor"))
                try $0.system.unlink($0.path("donor"), in: currentDirectory)
            },
            StateRow("directory-of-a-newer-version", Answer(state: .unsupported)) {
                try $0.makeDirectory($1)
                try $0.setAttribute($1, Array("2A\0\0".utf8) + [UInt8](repeating: 7, count: 16))
            },
            StateRow(
                ".candado-tmp-0123456789abcdef", Answer(state: .plain, findings: [.plain, .leftover])
            ) { try $0.plain($1) },
            StateRow(
                ".candado-tmp-fedcba9876543210",
                Answer(state: .protected, protectionClass: ProtectionClass.none, place: .attribute, findings: .leftover)
            ) { try $0.protected($1) },
            // Alike, but no name of ours.
            StateRow(".candado-tmp-0123", Answer(state: .plain, findings: .plain)) { try $0.plain($1) },
        ]
}

@Suite struct StateTests {
    @Test(arguments: StateRow.all)
    func theStateIsTold(row: StateRow) throws {
        let fixture = try AuditFixture()
        try row.make(fixture, row.name)
        for comparesHeaders in [false, true] {
            var options = Audit.Options()
            options.comparesHeaders = comparesHeaders
            options.keybag = fixture.own.files.keys.keybagIdentifier
            let run = try AuditRun([fixture.root], options)
            let expected = comparesHeaders ? row.comparing : row.plain
            let file = try #require(run.files(below: fixture.root)[row.name])
            let answer = StateRow.Answer(
                state: file.state, protectionClass: file.protectionClass, place: file.place, findings: file.findings)
            #expect(answer == expected, "comparing headers: \(comparesHeaders)")
            #expect((file.problem != nil) == [.damaged, .unsupported].contains(expected.state))
            #expect(run.summary.violations == (expected.findings.isViolation ? 1 : 0))
            #expect(run.summary.failed == (expected.state == .unsupported ? 1 : 0))
            #expect(run.failures.map(\.path) == (expected.state == .unsupported ? [fixture.path(row.name)] : []))
            // The operand given by itself is judged like what was found.
            if expected.state != .directory, file.bytes > 0 {
                let alone = try AuditRun([fixture.path(row.name)], options)
                #expect(alone.files(below: fixture.path(row.name))[.current] == file)
            }
        }
    }

    @Test func everyFindingIsInTheTable() {
        var told: AuditFindings = []
        for row in StateRow.all { told.formUnion(row.plain.findings.union(row.comparing.findings)) }
        for finding in AuditFindings.all { #expect(told.isSuperset(of: finding), "\(finding.names)") }
    }

    @Test func withoutAKnownKeybagNothingIsForeignAndKeybagsAreCounted() throws {
        let fixture = try AuditFixture()
        try fixture.protected("own")
        try fixture.protected("own-too", .complete)
        try fixture.protected("foreign", foreign: true)
        let run = try AuditRun([fixture.root])
        #expect(run.summary.states[.foreign] == nil)
        #expect(run.summary.violations == 0)
        #expect(
            run.summary.keybags == [
                fixture.own.files.keys.keybagIdentifier: 2, fixture.foreign.files.keys.keybagIdentifier: 1,
            ])
    }

    @Test func keybagsBeyondAThousandAreCountedTogether() throws {
        let fixture = try AuditFixture()
        try fixture.protected("file")
        var record = try fixture.attribute("file")
        for number in 0..<1003 {
            let name = try #require(FilePath("made-up-\(number)"))
            try fixture.plain(name, String(repeating: "x", count: 1024))
            record[4] = UInt8(number & 255)
            record[5] = UInt8(number >> 8)
            try fixture.setAttribute(name, record)
        }
        try fixture.system.unlink(fixture.path("file"), in: currentDirectory)
        var options = Audit.Options()
        options.threads = 1
        let run = try AuditRun([fixture.root], options)
        #expect(run.summary.keybags.count == 1000)
        #expect(run.summary.filesOfFurtherKeybags == 3)
    }

    /// Field report XA-01: editors save by a new file and a rename, and what they leave is plain.
    @Test(arguments: ["sed -i s/e/a/ file", "cp file new && mv new file", "printf x > new && mv new file"])
    func whatAnEditorLeavesIsNoticed(line: String) throws {
        let fixture = try AuditFixture()
        try fixture.protected("file")
        #expect(try AuditRun([fixture.root]).summary.violations == 0)
        try fixture.shell(line)
        let run = try AuditRun([fixture.root])
        #expect(run.summary.violations == 1)
        let findings = try #require(run.files(below: fixture.root)["file"]?.findings)
        #expect(!findings.isDisjoint(with: [.plain, .attributeLost, .damaged]))
    }

    /// Field reports XA-03 and AU-02: copies without attributes, and records exchanged between two files, are named.
    @Test func exchangedRecordsAreNamedOnBothFiles() throws {
        let fixture = try AuditFixture()
        try fixture.protected("one")
        try fixture.protected("two")
        let (one, two) = (try fixture.attribute("one"), try fixture.attribute("two"))
        try fixture.setAttribute("one", two)
        try fixture.setAttribute("two", one)
        var options = Audit.Options()
        options.comparesHeaders = true
        let files = try AuditRun([fixture.root], options).files(below: fixture.root)
        #expect(files["one"]?.findings == .recordDiffers)
        #expect(files["two"]?.findings == .recordDiffers)
    }
}
