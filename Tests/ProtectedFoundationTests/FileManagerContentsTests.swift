import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileManagerContentsTests {
    private let manager = FileManager.default

    /// Whether a file can be made, by the state matrix.
    static func canCreate(_ protectionClass: ProtectionClass, _ state: LockState) -> Bool {
        switch protectionClass {
        case .complete: state == .unlocked
        case .completeUnlessOpen, .none: true
        case .completeUntilFirstUserAuthentication: state != .beforeFirstUnlock
        }
    }

    /// Whether a file can be opened, by the state matrix.
    static func canOpen(_ protectionClass: ProtectionClass, _ state: LockState) -> Bool {
        switch protectionClass {
        case .complete, .completeUnlessOpen: state == .unlocked
        case .completeUntilFirstUserAuthentication: state != .beforeFirstUnlock
        case .none: true
        }
    }

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func aFileIsMadeWithTheClassOrNotAtAll(_ state: LockState, _ wanted: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d", wanted)
        try fixture.run(state) {
            let named = manager.createFile(
                atPath: fixture.path("a"), contents: FilesFixture.content,
                attributes: [.protectionKey: wanted.fileProtectionType, .posixPermissions: 0o640])
            let given = manager.createFile(atPath: fixture.path("d/b"), contents: FilesFixture.content)
            #expect(named == Self.canCreate(wanted, state))
            #expect(given == named)
        }
        #expect(try fixture.holdsNothingPlain())
        guard Self.canCreate(wanted, state) else {
            #expect(try fixture.names() == ["d"])
            #expect(try fixture.names("d").isEmpty)
            return
        }
        if state == .locked { try fixture.unlock() }
        for name in ["a", "d/b"] {
            #expect(try fixture.content(name) == FilesFixture.content)
            #expect(try fixture.protectionClass(name) == wanted)
        }
        #expect(try manager.attributesOfItem(atPath: fixture.path("a"))[.posixPermissions] as? Int == 0o640)
    }

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func contentIsReadOrNilAndNeverReplacedWhileLocked(_ state: LockState, _ present: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", present)
        let before = fixture.bytes("a")
        let canOpen = Self.canOpen(present, state)
        try fixture.run(state) {
            #expect(manager.contents(atPath: fixture.path("a")) == (canOpen ? FilesFixture.content : nil))
            let new = Data("new".utf8)
            let plain = manager.createFile(atPath: fixture.path("a"), contents: new)
            #expect(plain == canOpen)
            let named = manager.createFile(
                atPath: fixture.path("a"), contents: new, attributes: [.protectionKey: FileProtectionType.none])
            #expect(named == canOpen)
            if !canOpen { #expect(fixture.bytes("a") == before) }
        }
    }

    @Test func aReplacedFileKeepsItsClass() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        let isMade = fixture.run { manager.createFile(atPath: fixture.path("a"), contents: Data("new".utf8)) }
        #expect(isMade)
        #expect(try fixture.protectionClass("a") == .complete)
        #expect(try fixture.content("a") == Data("new".utf8))
    }

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func contentCountsNotTheContainer(_ state: LockState, _ protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        for name in ["a", "b"] { try fixture.protect(name, protectionClass) }
        var other = FilesFixture.content
        other[other.count - 1] ^= 1
        try fixture.protect("changed", protectionClass, other)
        try fixture.protect("longer", protectionClass, FilesFixture.content + [0])
        try fixture.write("plain")
        let canOpen = Self.canOpen(protectionClass, state)
        try fixture.run(state) {
            for (name, isEqual) in [
                ("b", true), ("plain", true), ("changed", false), ("longer", false), ("none", false),
            ] {
                let first = fixture.path("a")
                let second = fixture.path(name)
                #expect(manager.contentsEqual(atPath: first, andPath: second) == (isEqual && canOpen), "\(name)")
                #expect(manager.contentsEqual(atPath: second, andPath: first) == (isEqual && canOpen), "\(name)")
            }
        }
    }

    @Test func treesAreComparedByTheirContent() throws {
        let fixture = try FilesFixture()
        for name in ["one", "two"] {
            try fixture.makeDirectory(name)
            try fixture.makeDirectory(name + "/inner", .complete)
            try fixture.protect(name + "/inner/a", .complete)
        }
        try fixture.protect("one/b", .none)
        try fixture.write("two/b")
        try fixture.run {
            #expect(manager.contentsEqual(atPath: fixture.path("one"), andPath: fixture.path("two")))
            try fixture.write("two/c")
            #expect(!manager.contentsEqual(atPath: fixture.path("one"), andPath: fixture.path("two")))
        }
        try fixture.directory.write(Array("other".utf8), to: "files/one/c")
        fixture.run { #expect(!manager.contentsEqual(atPath: fixture.path("one"), andPath: fixture.path("two"))) }
    }

    /// In a process of its own, because it configures where keys are.
    @Test func withoutKeysNothingIsWrittenOrTakenForEmpty() async {
        await #expect(processExitsWith: .success) {
            let fixture = try FilesFixture()
            let manager = FileManager.default
            try fixture.protect("a", .complete)
            try fixture.makeDirectory("d", ProtectionClass.none)
            let before = fixture.bytes("a")
            try FileProtection.configure(.agent(of: KeybagHome(directory: fixture.directory.appending("nowhere"))))
            let url = fixture.url("a")
            let path = fixture.path("a")
            #expect(manager.contents(atPath: path) == nil)
            #expect(!manager.createFile(atPath: path, contents: Data()))
            #expect(!manager.createFile(atPath: fixture.path("d/b"), contents: FilesFixture.content))
            let copying = thrownBy { try manager.copyItem(atPath: path, toPath: fixture.path("d/c")) }
            #expect(copying?.code == 512)
            let opening = thrownBy { try FileHandle(forWritingTo: url) }
            #expect(opening?.code == 512)
            let changing = thrownBy {
                try manager.setAttributes([.protectionKey: FileProtectionType.none], ofItemAtPath: fixture.path("d"))
            }
            #expect(changing?.code == 256)
            #expect(fixture.bytes("a") == before)
            #expect(try fixture.names("d").isEmpty)
        }
    }
}
