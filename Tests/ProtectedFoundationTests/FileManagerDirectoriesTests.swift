import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileManagerDirectoriesTests {
    private let manager = FileManager.default

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func aDirectoryIsMadeWithAClassInEveryState(_ state: LockState, _ wanted: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.run(state) {
            try manager.createDirectory(
                at: fixture.url("a/b"), withIntermediateDirectories: true,
                attributes: [.protectionKey: wanted.fileProtectionType, .posixPermissions: 0o710])
        }
        for name in ["a", "a/b"] {
            #expect(try fixture.protectionClass(name) == wanted)
            #expect(try manager.attributesOfItem(atPath: fixture.path(name))[.posixPermissions] as? Int == 0o710)
        }
        #expect(try fixture.names() == ["a"], "no other name is left")
    }

    @Test func aDirectoryInsideOneWithAClassGivesTheSameAndNeedsNoKeys() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d", .complete)
        // No keys are given: what is inherited asks nobody.
        try manager.createDirectory(atPath: fixture.path("d/a/b/"), withIntermediateDirectories: true)
        for name in ["d/a", "d/a/b"] { #expect(try fixture.protectionClass(name) == .complete) }
        try fixture.run {
            try manager.createDirectory(
                atPath: fixture.path("d/c"), withIntermediateDirectories: false,
                attributes: [.protectionKey: FileProtectionType.none])
        }
        #expect(try fixture.protectionClass("d/c") == ProtectionClass.none, "what is asked for counts")
    }

    @Test func errorsAreFoundationsInsideOneWithAClass() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d", .complete)
        try fixture.makeDirectory("d/a")
        try fixture.write("d/file")
        func attempt(_ name: String, _ intermediates: Bool) -> FilesFailure? {
            thrownBy {
                try manager.createDirectory(atPath: fixture.path(name), withIntermediateDirectories: intermediates)
            }
        }
        #expect(attempt("d/a", false) == FilesFailure(code: 516, beneath: 17))
        #expect(attempt("d/a", true) == nil)
        #expect(attempt("d/x/y", false) == FilesFailure(code: 4, beneath: 2))
        #expect(attempt("d/file", true) == FilesFailure(code: 516, beneath: 17))
        #expect(attempt("d/file/x", true) == FilesFailure(code: 512, beneath: 20))
    }

    @Test func aDirectoryThatIsThereGetsAClassOnlyToBecomeStronger() throws {
        let fixture = try FilesFixture()
        let cases: [(ProtectionClass?, ProtectionClass)] = [
            (nil, .complete), (ProtectionClass.none, .complete), (.complete, .complete),
            (.completeUnlessOpen, .completeUnlessOpen),
        ]
        for (index, (present, expected)) in cases.enumerated() {
            try fixture.makeDirectory("d\(index)", present)
            try fixture.run {
                try manager.createDirectory(
                    atPath: fixture.path("d\(index)"), withIntermediateDirectories: true,
                    attributes: [
                        .protectionKey: present == .completeUnlessOpen
                            ? FileProtectionType.completeUntilFirstUserAuthentication : .complete
                    ])
            }
            #expect(try fixture.protectionClass("d\(index)") == expected)
        }
    }

    @Test func aClassThatCannotBeReadIsNoReasonForAPlainDirectory() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d")
        let directory = try LinuxSystemCalls.shared.openFile(fixture.file("d"), [.read, .directory])
        try LinuxSystemCalls.shared.setAttribute(
            KeyRecord.attributeName, of: directory.number, to: [0x31, 0x41], replacing: .allowed)
        #expect(
            thrownBy { try manager.createDirectory(atPath: fixture.path("d/a"), withIntermediateDirectories: true) }?
                .code
                == 512)
        #expect(try fixture.names("d").isEmpty)
    }

    @Test func whicheverCallFailsThereIsNoDirectoryWithoutTheClass() throws {
        let armed = Mutex(false)
        let runs = try failingEveryCall(matching: { _ in armed.withLock { $0 } }) {
            try FilesFixture()
        } _: { fixture, system in
            let protection = try fixture.opened(system)
            armed.withLock { $0 = true }
            defer { armed.withLock { $0 = false } }
            try Keys.$given.withValue(.success(protection)) {
                try manager.createDirectory(
                    atPath: fixture.path("a"), withIntermediateDirectories: false,
                    attributes: [.protectionKey: FileProtectionType.complete])
            }
        } check: { fixture, caused, thrown in
            let names = try fixture.names()
            if names.contains("a") {
                #expect(try fixture.protectionClass("a") == .complete, "\(caused)")
            } else {
                #expect(thrown != nil, "\(caused)")
            }
        }
        #expect(runs > 10)
    }
}
