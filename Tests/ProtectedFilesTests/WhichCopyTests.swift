import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// Which copy of the key record counts, the attribute or the header's, and what `repair` makes of it
/// (`docs/formats/container.md`).
@Suite struct WhichCopyTests {
    /// What is stored, and what has to come of it.
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        /// The attribute; nil for none.
        var attribute: RecordSource?
        /// The copy in both header slots.
        var header: RecordSource
        /// The class that counts while unlocked, and where its record is.
        var counts: (ProtectionClass, RecordPlace)
        /// What reading ends in while locked; nil for the content.
        var whileLocked: ProtectionError.Code?
        var mended: [RepairReport.Mended]
        var testDescription: String { name }
    }

    /// Records for the file under test, which is of class C.
    enum RecordSource: Sendable {
        case own(ProtectionClass, generation: UInt8 = 0, wasWeaker: Bool = false)
        /// A good record of the same keybag, for another file's key.
        case otherFile(ProtectionClass)
        case otherKeybag(ProtectionClass)
        case directory
        case bytes([UInt8])

        var isOfNewGeneration: Bool { if case .own(_, let generation, _) = self { generation > 0 } else { false } }
    }

    static let classC = ProtectionClass.completeUntilFirstUserAuthentication
    private static let own = RecordSource.own(classC)

    static let cases: [Case] = [
        Case(name: "as it should be", attribute: own, header: own, counts: (classC, .both), mended: []),
        Case(name: "attribute missing", attribute: nil, header: own, counts: (classC, .header), mended: [.attribute]),
        Case(
            name: "attribute empty", attribute: .bytes([]), header: own, counts: (classC, .header), mended: [.attribute]
        ),
        Case(
            name: "attribute of garbage", attribute: .bytes(pattern(60)), header: own, counts: (classC, .header),
            mended: [.attribute]),
        Case(
            name: "attribute larger than any record", attribute: .bytes(pattern(2000)), header: own,
            counts: (classC, .header), mended: [.attribute]),
        Case(
            name: "a directory's attribute", attribute: .directory, header: own, counts: (classC, .header),
            mended: [.attribute]),
        Case(
            name: "attribute weaker", attribute: .own(.none), header: own, counts: (classC, .header),
            mended: [.attribute]),
        Case(
            name: "attribute stronger", attribute: .own(.complete, wasWeaker: true), header: own,
            counts: (.complete, .attribute), whileLocked: .locked(.complete), mended: [.header]),
        Case(
            name: "header stronger", attribute: own, header: .own(.complete, wasWeaker: true),
            counts: (.complete, .header), whileLocked: .locked(.complete), mended: [.attribute]),
        Case(
            name: "attribute B, header C", attribute: .own(.completeUnlessOpen, wasWeaker: true), header: own,
            counts: (.completeUnlessOpen, .attribute), whileLocked: .locked(.completeUnlessOpen), mended: [.header]),
        Case(
            name: "attribute A, header B", attribute: .own(.complete), header: .own(.completeUnlessOpen),
            counts: (.complete, .attribute), whileLocked: .locked(.complete), mended: [.header]),
        Case(
            name: "attribute newer generation", attribute: .own(classC, generation: 1), header: own,
            counts: (classC, .attribute), mended: [.header]),
        Case(
            name: "header newer generation", attribute: own, header: .own(classC, generation: 1),
            counts: (classC, .header), mended: [.attribute]),
        Case(
            name: "older generation of a stronger class", attribute: .own(.complete, generation: 0),
            header: .own(classC, generation: 1), counts: (.complete, .attribute), whileLocked: .locked(.complete),
            mended: [.header]),
        Case(
            name: "attribute hides a weaker past", attribute: own, header: .own(classC, wasWeaker: true),
            counts: (classC, .header), mended: [.attribute]),
        Case(
            name: "header hides a weaker past", attribute: .own(classC, wasWeaker: true), header: own,
            counts: (classC, .attribute), mended: [.header]),
        Case(
            name: "another file's record, same class", attribute: .otherFile(classC), header: own,
            counts: (classC, .header), mended: [.attribute]),
        Case(
            name: "another file's record, weaker", attribute: .otherFile(.none), header: own, counts: (classC, .header),
            mended: [.attribute]),
        // Without the key nobody can tell that the claim is false: locked, and the weaker one is not tried.
        Case(
            name: "another file's record, stronger", attribute: .otherFile(.complete), header: own,
            counts: (classC, .header), whileLocked: .locked(.complete), mended: [.attribute]),
        Case(
            name: "another keybag's record", attribute: .otherKeybag(classC), header: own, counts: (classC, .header),
            mended: [.attribute]),
        Case(
            name: "another keybag's stronger record", attribute: .otherKeybag(.complete), header: own,
            counts: (classC, .header), mended: [.attribute]),
    ]

    /// Those of whose file key there is a wrap for a weaker class than the one that counts.
    static let flagged: Set<String> = [
        "attribute weaker", "attribute stronger", "header stronger", "attribute B, header C", "attribute A, header B",
        "older generation of a stronger class", "attribute hides a weaker past", "header hides a weaker past",
    ]

    /// A file with these copies.
    struct Stage {
        let fixture: FilesFixture
        let path: FilePath
        let content = pattern(9000)
        private let original: KeyRecord
        let other: FilesFixture

        init() throws {
            fixture = try FilesFixture()
            other = try FilesFixture()
            path = fixture.path("file")
            try fixture.files.write(content, to: path, class: WhichCopyTests.classC)
            original = try #require(try FileInspection.inspect(path).record)
        }

        func opened() throws -> Descriptor { try LinuxSystemCalls.shared.openFile(path, [.read, .write]) }

        func bytes(_ source: WhichCopyTests.RecordSource) throws -> [UInt8] {
            if case .bytes(let bytes) = source { return bytes }
            return try record(source).encoded
        }

        func record(_ source: WhichCopyTests.RecordSource) throws -> KeyRecord {
            switch source {
            case .own(let protectionClass, let generation, let wasWeaker):
                if generation > 0, fixture.keybag.newestGeneration(of: .fileUntilFirstUnlock) == 0 {
                    try fixture.keybag.rotate([.fileUntilFirstUnlock])
                }
                let flags: KeyRecord.Flags = wasWeaker ? [.keyWasWeaker] : []
                if protectionClass == original.protectionClass, generation == 0, flags.isEmpty { return original }
                let record = try fixture.keybag.rewrap(original, to: protectionClass, flags: flags)
                #expect(record.generation == generation)
                return record
            case .otherFile(let protectionClass):
                return try fixture.keybag.makeFileKey(for: protectionClass, flags: []).record
            case .otherKeybag(let protectionClass):
                return try other.keybag.makeFileKey(for: protectionClass, flags: []).record
            case .directory: return KeyRecord(directory: .complete, keybag: fixture.keybag.keybagIdentifier)
            case .bytes: preconditionFailure("no record")
            }
        }

        func setAttribute(_ bytes: [UInt8]?) throws {
            let file = try opened()
            if let bytes {
                try LinuxSystemCalls.shared.setAttribute(
                    KeyRecord.attributeName, of: file.number, to: bytes, replacing: .allowed)
            } else {
                try LinuxSystemCalls.shared.removeAttribute(KeyRecord.attributeName, of: file.number)
            }
        }

        /// Writes both slots with this record, as somebody with the key.
        func setHeader(_ record: KeyRecord) throws {
            var file = try ContainerOpening.open(try opened(), canWrite: true, fixture.keybag)
            for _ in 0..<2 {
                try file.writing { file, cipher in
                    var header = file.view.header
                    header.record = record
                    file.record = record
                    try file.writeHeader(header, &cipher)
                }
            }
        }

        func fingerprint() throws -> [[UInt8]?] {
            let file = try opened()
            return [
                try fixture.directory.read("files/file"),
                try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number),
            ]
        }
    }

    private func stage(_ example: Case) throws -> Stage {
        let stage = try Stage()
        // The newer generation last: from then on there are no new records of the older one.
        var attribute: [UInt8]?
        if let source = example.attribute, !source.isOfNewGeneration { attribute = try stage.bytes(source) }
        let header = try stage.record(example.header)
        if let source = example.attribute, source.isOfNewGeneration { attribute = try stage.bytes(source) }
        try stage.setHeader(header)
        try stage.setAttribute(attribute)
        return stage
    }

    @Test(arguments: cases) func theRightCopyCounts(example: Case) throws {
        let stage = try stage(example)
        let files = stage.fixture.files
        let before = try stage.fingerprint()
        let handle = try files.open(stage.path, for: .reading)
        #expect(try handle.allContent() == stage.content)
        #expect(try handle.protectionClass == example.counts.0)
        #expect(handle.recordPlace == example.counts.1)
        #expect(try files.read(stage.path) { _ in }.place == example.counts.1)
        let inspection = try FileInspection.inspect(stage.path, comparingHeaders: true)
        // Without a key the stronger claim is shown; with it, the one that is true.
        if example.whileLocked == nil || example.counts.0 == .complete {
            #expect(inspection.state == .protected || inspection.state == .foreign)
        }
        try stage.fixture.lock()
        #expect(code { try files.contents(of: stage.path) } == example.whileLocked)
        #expect(code { try files.open(stage.path, for: .reading) } == example.whileLocked)
        #expect(try stage.fingerprint() == before, "looking at it has written something")
    }

    @Test(arguments: cases) func repairMakesTheCopiesAgreeAndWritesNothingWhileLocked(example: Case) throws {
        let stage = try stage(example)
        let files = stage.fixture.files
        let before = try stage.fingerprint()
        if let expected = example.whileLocked {
            try stage.fixture.lock()
            #expect(code { try files.repair(stage.path) } == expected)
            #expect(code { try files.write([1], to: stage.path, class: ProtectionClass.none) } == expected)
            #expect(code { try files.setProtectionClass(of: stage.path, to: .none) } == expected)
            #expect(code { try files.setProtectionClass(of: stage.path, to: .none, rekey: true) } == expected)
            #expect(code { try files.open(stage.path, for: .updating) } == expected)
            #expect(try stage.fingerprint() == before)
            try stage.fixture.unlock()
        }
        let report = try files.repair(stage.path)
        #expect(report.mended == example.mended)
        #expect(report.protectionClass == example.counts.0)
        if example.mended.isEmpty { #expect(try stage.fingerprint() == before) }
        #expect(try files.repair(stage.path).mended == [])
        // A weaker copy of the same key was there, or the record says that there was one once.
        let isFlagged = Self.flagged.contains(example.name)
        #expect(try FileInspection.inspect(stage.path).record?.flags == (isFlagged ? [.keyWasWeaker] : []))
        let read = try files.open(stage.path, for: .reading)
        #expect(read.recordPlace == .both)
        #expect(try read.allContent() == stage.content)
        #expect(try files.protectionClass(of: stage.path) == example.counts.0)
    }

    /// Setting the class that counts finishes what was interrupted, as a repair does; and no weaker past is forgotten on
    /// the way to a third class.
    @Test(arguments: cases) func settingAClassMakesTheCopiesAgree(example: Case) throws {
        for wanted in [example.counts.0, .completeUnlessOpen] {
            let stage = try stage(example)
            let files = stage.fixture.files
            let change = try files.setProtectionClass(of: stage.path, to: wanted)
            #expect(
                change
                    == ClassChange(
                        changed: !example.mended.isEmpty || wanted != example.counts.0, from: example.counts.0,
                        to: wanted))
            let isRaised = wanted.isStronger(than: example.counts.0)
            let record = try FileInspection.inspect(stage.path, comparingHeaders: true)
            #expect(record.place == .both && record.protectionClass == wanted)
            #expect(record.record?.flags == (isRaised || Self.flagged.contains(example.name) ? [.keyWasWeaker] : []))
            #expect(try files.contents(of: stage.path) == stage.content)
        }
    }

    /// Nothing that is from the future is read, replaced, mended or given another class.
    @Test(arguments: [0, 1, 2]) func recordsFromTheFutureAreLeftAlone(byte: Int) throws {
        let values: [UInt8] = [0x32, 0x45, 0x02]
        for inHeader in [false, true] {
            let stage = try Stage()
            let files = stage.fixture.files
            var record = try stage.bytes(.own(Self.classC))
            record[byte] = values[byte]
            if inHeader {
                let file = try stage.opened()
                try record.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 64) }
            } else {
                try stage.setAttribute(record)
            }
            let before = try stage.fingerprint()
            let attempts: [() throws -> Void] = [
                { _ = try files.contents(of: stage.path) },
                { _ = try files.open(stage.path, for: .updating) },
                { try files.write([1], to: stage.path) },
                { _ = try files.repair(stage.path) },
                { _ = try files.setProtectionClass(of: stage.path, to: .complete) },
                { _ = try files.setProtectionClass(of: stage.path, to: .complete, rekey: true) },
            ]
            for (index, attempt) in attempts.enumerated() {
                #expect(code(attempt) == .needsNewerVersion, "byte \(byte), header \(inHeader), attempt \(index)")
            }
            #expect(try stage.fingerprint() == before)
            if !inHeader {
                #expect(try FileInspection.inspect(stage.path).state == .unsupported)
            }
        }
    }
}
