import FileProtection
import ProtectionAudit
import TestSupport
import Testing

@Suite struct FormatTests {
    /// Names that break lines, drive terminals or are no text.
    private static let hostileNames: [[UInt8]] = [
        Array("new\nline".utf8), Array("plain: 'x'\nviolations: 0".utf8), Array("\u{1B}[2J".utf8), [0xFF, 0xFE, 0x41],
        Array("-n".utf8), Array("quo'te\"s\\".utf8), Array("é\u{202E}".utf8), Array("\u{7F}\u{9B}".utf8),
        Array(" ".utf8),
        Array("tab\t".utf8), [0xED, 0xA0, 0x80], Array(repeating: 0xC3, count: 255),
    ]

    private func makeHostileTree(_ fixture: AuditFixture) throws {
        for name in Self.hostileNames { try fixture.plain(try #require(FilePath(bytes: name))) }
    }

    @Test func hostileNamesBreakNoLineOfText() throws {
        let fixture = try AuditFixture()
        try makeHostileTree(fixture)
        let run = try AuditRun([fixture.root], format: AuditTextFormat(hasTotals: false))
        #expect(run.lines.count == Self.hostileNames.count)
        #expect(run.lines.allSatisfy { $0.hasPrefix("plain           '") && $0.hasSuffix("'") })
        #expect(
            run.text.unicodeScalars.allSatisfy {
                $0 == "\n" || !(0..<0x20).contains($0.value) && !(0x7F..<0xA0).contains($0.value)
            })
    }

    @Test func everyNameCanBeReadBackFromJSON() throws {
        let fixture = try AuditFixture()
        try makeHostileTree(fixture)
        try fixture.protected("good")
        let run = try AuditRun([fixture.root])
        let script = """
            import base64, json, os, sys
            root = sys.argv[1].encode()
            lines = [json.loads(line) for line in sys.stdin.buffer.read().splitlines()]
            assert all(line["schema"] == 1 for line in lines)
            entries, summary = lines[:-1], lines[-1]["summary"]
            names = []
            for entry in entries:
                assert ("path" in entry) != ("path_bytes" in entry), entry
                raw = entry["path"].encode() if "path" in entry else base64.b64decode(entry["path_bytes"], validate=True)
                if "path_bytes" in entry:
                    try: raw.decode(); raise SystemExit("UTF-8 in path_bytes")
                    except UnicodeDecodeError: pass
                names.append(raw)
            assert names[0] == root, names[0]
            assert sorted(os.listdir(root)) == [os.path.basename(name) for name in names[1:]], names
            assert summary["files"] == len(names) - 1 == sum(state["files"] for state in summary["states"].values())
            assert summary["bytes"] == sum(entry.get("bytes", 0) for entry in entries)
            assert summary["classes"]["none"]["files"] == 1 and summary["violations"] == len(names) - 2
            assert summary["findings"]["plain"] == sum("plain" in entry.get("findings", []) for entry in entries)
            """
        let result = try Command.run("python3", ["-c", script, fixture.root.description], input: Array(run.text.utf8))
        #expect(result.status == 0, "\(result.errorText)")
    }

    private static let keybag = KeybagIdentifier("00112233-4455-4677-8899-aabbccddeeff")

    private static let entries: [(AuditEntry, text: String, json: String)] = [
        (
            AuditEntry(
                path: "a/b",
                outcome: .inspected(
                    AuditedFile(
                        state: .protected, protectionClass: .completeUnlessOpen, keybag: keybag, place: .both,
                        bytes: 8192, allocated: 12288))),
            "",
            """
            {"schema":1,"path":"a/b","state":"protected","class":"complete-unless-open",\
            "keybag":"00112233-4455-4677-8899-aabbccddeeff","record":"attribute","bytes":8192,"allocated":12288}

            """
        ),
        (
            AuditEntry(
                path: "it's",
                outcome: .inspected(
                    AuditedFile(
                        state: .foreign, protectionClass: .complete, keybag: keybag, place: .header, bytes: 1,
                        findings: [.leftover, .foreign, .attributeLost]))),
            """
            foreign         'it\\'s': belongs to keybag 00112233-4455-4677-8899-aabbccddeeff
            attribute-lost  'it\\'s': the key record is in the header only
            leftover        'it\\'s': a change of a file was interrupted, or is under way

            """,
            """
            {"schema":1,"path":"it's","state":"foreign","class":"complete",\
            "keybag":"00112233-4455-4677-8899-aabbccddeeff","record":"header","bytes":1,"allocated":0,\
            "findings":["foreign","attribute-lost","leftover"]}

            """
        ),
        (
            AuditEntry(
                path: "broken",
                outcome: .inspected(
                    AuditedFile(
                        state: .damaged, bytes: 5, findings: .damaged,
                        problem: ProtectionError(.damaged(.record), "the key record is empty")))),
            "damaged         'broken': the key record is empty\n",
            """
            {"schema":1,"path":"broken","state":"damaged","bytes":5,"allocated":0,"findings":["damaged"],\
            "error":{"message":"the key record is empty"}}

            """
        ),
        (
            AuditEntry(
                path: "d",
                outcome: .inspected(AuditedFile(state: .directory, protectionClass: .complete, place: .attribute))),
            "",
            "{\"schema\":1,\"path\":\"d\",\"state\":\"directory\",\"class\":\"complete\",\"record\":\"attribute\"}\n"
        ),
        (
            AuditEntry(path: "l", outcome: .skipped(.symbolicLink)), "",
            "{\"schema\":1,\"path\":\"l\",\"skipped\":\"symbolic-link\"}\n"
        ),
        (
            AuditEntry(path: "x", outcome: .failed(ProtectionError(.system(13), "openat failed"))), "",
            "{\"schema\":1,\"path\":\"x\",\"error\":{\"message\":\"openat failed\"}}\n"
        ),
    ]

    @Test func entriesAreWrittenAsDocumented() {
        for (entry, text, json) in Self.entries {
            var bytes: [UInt8] = []
            AuditTextFormat().append(entry, to: &bytes)
            #expect(String(decoding: bytes, as: UTF8.self) == text)
            bytes = []
            CollectingFormat.json.append(entry, to: &bytes)
            #expect(String(decoding: bytes, as: UTF8.self) == json)
        }
    }

    private static let summary: AuditSummary = {
        func count(_ files: UInt64, _ bytes: Int64, _ allocated: Int64) -> AuditCount {
            var count = AuditCount()
            (count.files, count.bytes, count.allocated) = (files, bytes, allocated)
            return count
        }
        var summary = AuditSummary()
        summary.states = [
            .protected: count(1_000_000, 12_000_000_000, 12_100_000_000), .plain: count(2, 7, 8192),
            .directory: count(31, 0, 0),
        ]
        summary.classes = [
            .complete: count(999_999, 11_999_991_808, 12_099_991_808),
            .completeUntilFirstUserAuthentication: count(1, 8192, 8192),
        ]
        summary.directoryClasses = [.complete: 4]
        if let keybag { summary.keybags = [keybag: 1_000_000] }
        summary.findings = ["plain": 2, "leftover": 1]
        summary.violations = 2
        summary.skipped = [.symbolicLink: 3, .recoveryCapsule: 1]
        summary.failed = 1
        return summary
    }()

    @Test func theTotalsAreATableForPeople() {
        var bytes: [UInt8] = []
        AuditTextFormat().append(Self.summary, to: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                                        files        bytes      on disk
                protected             1000000  12000000000  12100000000
                  complete             999999  11999991808  12099991808
                  until-first-unlock        1         8192         8192
                plain                       2            7         8192
                all files             1000002  12000000007  12100008192
                directories: 31
                left out: symbolic links 3, recovery capsules 1
                could not be judged: 1
                violations: 2

                """)
        bytes = []
        AuditTextFormat(hasTotals: false).append(Self.summary, to: &bytes)
        #expect(bytes.isEmpty)
    }

    @Test func theTotalsAreOneObjectForPrograms() {
        var bytes: [UInt8] = []
        CollectingFormat.json.append(Self.summary, to: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                {"schema":1,"summary":{"files":1000002,"directories":31,"bytes":12000000007,"allocated":12100008192,\
                "states":{"protected":{"files":1000000,"bytes":12000000000,"allocated":12100000000},\
                "plain":{"files":2,"bytes":7,"allocated":8192},"damaged":{"files":0,"bytes":0,"allocated":0},\
                "foreign":{"files":0,"bytes":0,"allocated":0},"unsupported":{"files":0,"bytes":0,"allocated":0}},\
                "classes":{"complete":{"files":999999,"bytes":11999991808,"allocated":12099991808},\
                "complete-unless-open":{"files":0,"bytes":0,"allocated":0},\
                "until-first-unlock":{"files":1,"bytes":8192,"allocated":8192},\
                "none":{"files":0,"bytes":0,"allocated":0}},\
                "directory_classes":{"complete":4,"complete-unless-open":0,"until-first-unlock":0,"none":0},\
                "keybags":{"00112233-4455-4677-8899-aabbccddeeff":1000000},\
                "findings":{"plain":2,"damaged":0,"foreign":0,"attribute-lost":0,"record-differs":0,"leftover":1,\
                "key-was-weaker":0},"violations":2,\
                "skipped":{"symbolic-link":3,"special":0,"other-file-system":0,"recovery-capsule":1,"own-home":0,\
                "vanished":0},"failed":1}}

                """)
    }

    @Test func quietReportsHaveFindingsOnly() throws {
        let fixture = try AuditFixture()
        try fixture.protected("good")
        try fixture.plain("bad")
        try fixture.shell("ln -s bad link")
        let text = try AuditRun([fixture.root], format: AuditTextFormat(hasTotals: false))
        #expect(text.text == "plain           \(fixture.path("bad").quoted)\n")
        let json = try AuditRun([fixture.root], format: AuditJSONFormat(hasGoodEntries: false) { _ in [] })
        #expect(json.lines.count == 2)
        #expect(json.lines.first?.contains("\"state\":\"plain\"") == true)
        #expect(json.lines.last?.contains("\"violations\":1") == true)
        #expect(json.summary.skipped == [.symbolicLink: 1])
        #expect(json.summary.states[.protected]?.files == 1)
    }
}
