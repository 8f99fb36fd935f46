import FileProtection
import Foundation
import LinuxSystem
import TestSupport
import Testing

@testable import candado

@Suite("Files of reports and of recovery keys")
struct ReportFileTests {
    private static let calls: [SystemOperation] = [
        .attributeOfPath, .statusOfPath, .open, .attribute, .status, .readAt, .synchronize,
    ]

    @Test("A report never replaces a file that could not be looked at", arguments: calls, [EACCES, EIO, EMFILE])
    func unknownIsNotAbsent(_ operation: SystemOperation, _ errorNumber: Int32) throws {
        let directory = try TemporaryDirectory()
        try directory.write(Array("old".utf8), to: "report")
        let failing = FailingCalls(plan: .from(1), errorNumber: errorNumber) { $0.operation == operation }
        let path = directory.appending("report")
        #expect(throws: (any Error).self, "\(operation)") {
            let file = try ReportFile(path, failing.system)
            // Whoever gets this far must have been able to look.
            _ = file.write(Array("new".utf8))
            if failing.failed.isEmpty, operation != .synchronize { throw NotReached() }
            try file.publish()
        }
        #expect(try directory.read("report") == Array("old".utf8))
        #expect(try directory.names() == ["report"])
    }

    private struct NotReached: Error {}

    @Test("A report is written where nothing is, and over a plain file")
    func written() throws {
        let directory = try TemporaryDirectory()
        for text in ["first", "second"] {
            let file = try ReportFile(directory.appending("report"), LinuxSystemCalls.shared)
            #expect(file.write(Array(text.utf8)))
            try file.publish()
            #expect(try directory.read("report") == Array(text.utf8))
        }
    }

    @Test("A report that is given up leaves no name, also where files cannot be unnamed", arguments: [false, true])
    func givenUp(_ unnamed: Bool) throws {
        let directory = try TemporaryDirectory()
        let failing = FailingCalls(plan: unnamed ? .none : .from(1), errorNumber: EOPNOTSUPP) {
            $0.operation == .open && $0.options?.contains(.unnamed) == true
        }
        do {
            let file = try ReportFile(directory.appending("report"), failing.system)
            #expect(file.write([1, 2, 3]))
            #expect(try directory.names().count == (unnamed ? 0 : 1))
        }
        #expect(try directory.names().isEmpty)
        #expect(failing.leaked.isEmpty)
    }

    @Test("The file of a recovery key is removed only when no copy of the keybag can be there")
    func discardedRecoveryKeys() throws {
        for (present, errorNumber, stays) in [
            ([], nil, false), (["keybag.json"], nil, true), (["keybag.backup.json"], nil, true),
            (["keybag.json", "keybag.backup.json"], nil, true), ([], EIO, true), ([], EACCES, true),
            ([], ENOENT, false), ([], ENOTDIR, false),
        ] as [([FilePath], Int32?, Bool)] {
            let directory = try TemporaryDirectory()
            let home = KeybagHome(directory: directory.path)
            #expect(home.keybag.lastComponent == "keybag.json")
            #expect(home.keybagBackup.lastComponent == "keybag.backup.json")
            try directory.write([1], to: "recovery")
            for name in present { try directory.write([1], to: name) }
            let failing = FailingCalls(plan: errorNumber == nil ? .none : .from(1), errorNumber: errorNumber ?? 0) {
                $0.operation == .statusOfPath
            }
            InitializeCommand.discard(directory.appending("recovery"), unlessKeybagIn: home, failing.system)
            #expect(try directory.names().contains("recovery") == stays, "\(present) \(errorNumber ?? 0)")
        }
    }
}
