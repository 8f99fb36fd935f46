import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileManagerCopyTests {
    private let manager = FileManager.default

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func aCopyHasTheClassAndAKeyOfItsOwn(_ state: LockState, _ present: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", present)
        try fixture.protection.files.setPermissions(0o640, fixture.file("a"))
        try fixture.run(state) {
            let found = thrownBy { try manager.copyItem(atPath: fixture.path("a"), toPath: fixture.path("b")) }
            guard FileManagerContentsTests.canOpen(present, state) else {
                #expect(found == .lockedWriting)
                let names = try fixture.names()
                #expect(names == ["a"])
                return
            }
            #expect(found == nil)
            #expect(try manager.attributesOfItem(atPath: fixture.path("b"))[.posixPermissions] as? Int == 0o640)
            #expect(try fixture.record("b").protectionClass == present)
            #expect(try fixture.record("a") != fixture.record("b"))
            #expect(manager.contents(atPath: fixture.path("b")) == FilesFixture.content)
        }
        #expect(try fixture.holdsNothingPlain())
    }

    @Test func anErrorNamesBothPaths() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("b")
        let before = fixture.bytes("b")
        fixture.run {
            do {
                try manager.copyItem(atPath: fixture.path("a"), toPath: fixture.path("b"))
                Issue.record("a file was replaced")
            } catch {
                let error = error as NSError
                #expect(error.code == 516)
                #expect(error.userInfo["NSSourceFilePathErrorKey"] as? String == fixture.path("a"))
                #expect(error.userInfo["NSDestinationFilePath"] as? String == fixture.path("b"))
                #expect(error.userInfo["NSUserStringVariant"] as? [String] == ["Copy"])
            }
        }
        #expect(fixture.bytes("b") == before)
    }

    @Test(arguments: ProtectionClass.allCases) func aPlainFileComesIntoADirectoryAsItsClass(
        _ given: ProtectionClass
    ) throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.makeDirectory("d", given)
        try fixture.run {
            try manager.copyItem(at: fixture.url("a"), to: fixture.url("d/a"))
        }
        #expect(try fixture.protectionClass("d/a") == given)
        #expect(try fixture.content("d/a") == FilesFixture.content)
        #expect(try fixture.holdsNothingPlain(in: "d"))
    }

    @Test func aPlainFileComesNowhereWhenItsClassIsLocked() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.makeDirectory("d", .complete)
        try fixture.run(.locked) {
            #expect(thrownBy { try manager.copyItem(at: fixture.url("a"), to: fixture.url("d/a")) } == .lockedWriting)
        }
        #expect(try fixture.names("d").isEmpty)
    }

    @Test func aTreeKeepsTheClassesOfItsDirectoriesAndFiles() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("t")
        try fixture.makeDirectory("t/d", .complete)
        try fixture.makeDirectory("t/d/inner")
        try fixture.protect("t/d/a", .complete)
        try fixture.protect("t/b", .completeUnlessOpen)
        try fixture.directory.write(Array("plain".utf8), to: "files/t/plain", permissions: 0o604)
        try fixture.directory.write(Array("plain".utf8), to: "files/t/d/stray")
        try manager.createSymbolicLink(atPath: fixture.path("t/link"), withDestinationPath: "b")
        let delegate = FilesDelegate()
        let asking = FileManager()
        asking.delegate = delegate
        try fixture.run { try asking.copyItem(atPath: fixture.path("t"), toPath: fixture.path("u")) }
        #expect(try fixture.names("u") == ["b", "d", "link", "plain"])
        #expect(try fixture.protectionClass("u") == nil)
        #expect(try fixture.protectionClass("u/d") == .complete)
        #expect(try fixture.protectionClass("u/d/inner") == .complete, "made inside one with a class")
        #expect(try fixture.protectionClass("u/d/a") == .complete)
        #expect(try fixture.protectionClass("u/b") == .completeUnlessOpen)
        #expect(try fixture.protectionClass("u/d/stray") == .complete, "a plain file comes as a file of the class")
        #expect(fixture.bytes("u/plain") == Data("plain".utf8))
        #expect(try manager.attributesOfItem(atPath: fixture.path("u/plain"))[.posixPermissions] as? Int == 0o604)
        #expect(try manager.destinationOfSymbolicLink(atPath: fixture.path("u/link")) == "b")
        #expect(try fixture.content("u/d/a") == FilesFixture.content)
        #expect(delegate.asked.count == 8, "each item once: \(delegate.asked)")
        #expect(delegate.asked.allSatisfy { $0.hasPrefix("URL Copy ") })
    }

    @Test func aTreeThatIsLockedInPartIsCopiedWithoutItWhenTheDelegateSaysSo() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("t")
        try fixture.protect("t/a", .complete)
        try fixture.protect("t/d", ProtectionClass.none)
        try fixture.run(.locked) {
            let delegate = FilesDelegate(proceeds: true)
            let asking = FileManager()
            asking.delegate = delegate
            try asking.copyItem(atPath: fixture.path("t"), toPath: fixture.path("u"))
            #expect(try fixture.names("u") == ["d"])
            #expect(delegate.asked.contains { $0.hasPrefix("URL copying 513 ") })
            #expect(
                thrownBy { try manager.copyItem(atPath: fixture.path("t"), toPath: fixture.path("v")) }
                    == .lockedWriting
            )
        }
        #expect(try fixture.holdsNothingPlain())
    }

    @Test func aTreeIsCopiedIntoItselfOnce() throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("t", .complete)
        try fixture.protect("t/a", .complete)
        try fixture.run { try manager.copyItem(atPath: fixture.path("t"), toPath: fixture.path("t/u")) }
        #expect(try fixture.names("t/u") == ["a"])
    }

    @Test(arguments: LockState.allCases) func aHardLinkIsTheSameProtectedFile(_ state: LockState) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        let before = fixture.bytes("a")
        try fixture.run(state) { try manager.linkItem(atPath: fixture.path("a"), toPath: fixture.path("b")) }
        #expect(fixture.bytes("b") == before)
        #expect(try fixture.protectionClass("b") == .complete)
        if state == .locked { try fixture.unlock() }
        fixture.run {
            #expect(manager.contents(atPath: fixture.path("b")) == FilesFixture.content)
            // Replacing one name would part the two.
            #expect(!manager.createFile(atPath: fixture.path("b"), contents: Data()))
        }
        #expect(fixture.bytes("a") == before)
    }

    @Test func movingChangesNothingInEveryState() throws {
        for state in LockState.allCases {
            let fixture = try FilesFixture()
            try fixture.makeDirectory("d", ProtectionClass.none)
            try fixture.makeDirectory("tree", .complete)
            try fixture.protect("tree/a", .complete)
            try fixture.protect("a", .complete)
            try fixture.write("plain")
            let before = (fixture.bytes("a"), fixture.bytes("tree/a"))
            try fixture.run(state) {
                try manager.moveItem(atPath: fixture.path("a"), toPath: fixture.path("d/b"))
                try manager.moveItem(at: fixture.url("tree"), to: fixture.url("d/tree"))
                try manager.moveItem(at: fixture.url("plain"), to: fixture.url("d/plain"))
            }
            #expect(fixture.bytes("d/b") == before.0)
            #expect(fixture.bytes("d/tree/a") == before.1)
            #expect(try fixture.protectionClass("d/b") == .complete)
            #expect(try fixture.protectionClass("d/tree") == .complete)
            #expect(fixture.bytes("d/plain") == FilesFixture.content)
            #expect(try fixture.names() == ["d"])
        }
    }

    @Test func whatIsLockedIsNotReplacedByAMoveThatADelegateAllows() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("b", Data("new".utf8))
        let before = fixture.bytes("a")
        let asking = FileManager()
        let delegate = FilesDelegate(proceeds: true)
        asking.delegate = delegate
        try fixture.run(.locked) {
            try asking.moveItem(atPath: fixture.path("b"), toPath: fixture.path("a"))
        }
        #expect(fixture.bytes("a") == before)
        #expect(fixture.bytes("b") == Data("new".utf8))
        #expect(delegate.asked.contains { $0.hasPrefix("URL moving 513 ") })
        try fixture.unlock()
        try fixture.run { try asking.moveItem(atPath: fixture.path("b"), toPath: fixture.path("a")) }
        #expect(fixture.bytes("a") == Data("new".utf8))
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func acrossFileSystemsAMoveCopiesFirst() throws {
        let fixture = try FilesFixture()
        let image = try MountedImage(.ext4, size: 16 << 20)
        let there = image.path.description + "/"
        try fixture.makeDirectory("tree", .complete)
        try fixture.protect("tree/a", .complete)
        try fixture.protect("b", .completeUntilFirstUserAuthentication)
        try fixture.write("plain")
        try fixture.run {
            try manager.moveItem(atPath: fixture.path("tree"), toPath: there + "tree")
            try manager.moveItem(atPath: fixture.path("b"), toPath: there + "tree/b")
            try manager.moveItem(atPath: fixture.path("plain"), toPath: there + "tree/plain")
            #expect(try fixture.names().isEmpty)
            for (name, wanted) in [
                ("a", FileProtectionType.complete), ("b", .completeUntilFirstUserAuthentication), ("plain", .complete),
            ] {
                #expect(manager.contents(atPath: there + "tree/" + name) == FilesFixture.content)
                #expect(
                    try manager.attributesOfItem(atPath: there + "tree/" + name)[.protectionKey] as? FileProtectionType
                        == wanted)
            }
        }
        try fixture.protect("c", .complete)
        try fixture.run(.locked) {
            #expect(thrownBy { try manager.moveItem(atPath: fixture.path("c"), toPath: there + "c") } == .lockedWriting)
        }
        #expect(fixture.bytes("c") != nil)
        #expect(!manager.fileExists(atPath: there + "c"))
    }

    /// Somebody makes the name after it was found to be free: his item stays, whole and by itself.
    @Test(.enabled(if: MountedImage.unavailable == nil)) func acrossFileSystemsAMoveTakesNobodysName() throws {
        for isTree in [false, true] {
            let fixture = try FilesFixture()
            let image = try MountedImage(.tmpfs, size: 4 << 20)
            let there = image.path.description + "/"
            if isTree { try fixture.makeDirectory("a", .complete) }
            try fixture.protect(isTree ? "a/mine" : "a", .complete)
            let isMade = Mutex(false)
            let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
                // The first try, which cannot succeed.
                guard call.operation == .rename, call.source == fixture.file("a") else { return .proceed }
                isMade.withLock { $0 = true }
                let his = image.path.appending("a")
                if isTree {
                    try LinuxSystemCalls.shared.makeDirectory(his, in: currentDirectory, permissions: 0o700)
                } else {
                    _ = try LinuxSystemCalls.shared.openFile(his, [.write, .create], permissions: 0o600)
                }
                return .proceed
            }
            let protection = try fixture.opened(system)
            Keys.$given.withValue(.success(protection)) {
                let found = thrownBy { try manager.moveItem(atPath: fixture.path("a"), toPath: there + "a") }
                #expect(found?.code == 516)
            }
            #expect(isMade.withLock { $0 })
            #expect(try manager.contentsOfDirectory(atPath: there) == ["a"])
            if isTree { #expect(try manager.contentsOfDirectory(atPath: there + "a").isEmpty) }
            #expect(try fixture.content(isTree ? "a/mine" : "a") == FilesFixture.content)
        }
    }

    /// The permissions belong to what is durable when the call returns.
    @Test func aCopysPermissionsAreDurable() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.protection.files.setPermissions(0o640, fixture.file("a"))
        let changed = Mutex<Set<Int32>>([])
        let times = Mutex(0)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                guard let descriptor = call.descriptor else { return }
                switch call.operation {
                case .changePermissions:
                    times.withLock { $0 += 1 }
                    _ = changed.withLock { $0.insert(descriptor) }
                case .synchronize: _ = changed.withLock { $0.remove(descriptor) }
                default: return
                }
            })
        let protection = try fixture.opened(system)
        try Keys.$given.withValue(.success(protection)) {
            try manager.copyItem(atPath: fixture.path("a"), toPath: fixture.path("b"))
        }
        #expect(times.withLock { $0 } > 0)
        #expect(changed.withLock { $0 }.isEmpty, "changed and not synchronised")
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func onAFullDiskNothingHalfIsLeft() throws {
        let fixture = try FilesFixture()
        let image = try MountedImage(.tmpfs, size: 1 << 20)
        let there = image.path.description + "/"
        let large = Data(count: 2 << 20)
        try fixture.protect("a", .complete, large)
        try fixture.makeDirectory("tree", .complete)
        try fixture.protect("tree/b", .complete, large)
        fixture.run {
            #expect(thrownBy { try manager.copyItem(atPath: fixture.path("a"), toPath: there + "a") }?.code == 640)
            let attributes: [FileAttributeKey: Any] = [.protectionKey: FileProtectionType.complete]
            #expect(!manager.createFile(atPath: there + "c", contents: large, attributes: attributes))
            #expect(
                thrownBy { try manager.moveItem(atPath: fixture.path("tree"), toPath: there + "tree") }?.code == 640)
            #expect(manager.contents(atPath: fixture.path("tree/b")) == large)
        }
        #expect(try manager.contentsOfDirectory(atPath: there).isEmpty)
    }

    @Test func whicheverCallFailsNothingHalfIsLeft() throws {
        struct Start {
            let fixture: FilesFixture
        }
        let armed = Mutex(false)
        let runs = try failingEveryCall(matching: { _ in armed.withLock { $0 } }) {
            Start(fixture: try FilesFixture())
        } _: { start, system in
            try start.fixture.protect("a", .complete)
            let protection = try start.fixture.opened(system)
            armed.withLock { $0 = true }
            defer { armed.withLock { $0 = false } }
            try Keys.$given.withValue(.success(protection)) {
                try manager.copyItem(atPath: start.fixture.path("a"), toPath: start.fixture.path("b"))
            }
        } check: { start, caused, thrown in
            let fixture = start.fixture
            #expect(try fixture.content("a") == FilesFixture.content, "\(caused)")
            #expect(try fixture.holdsNothingPlain(), "\(caused)")
            let names = try fixture.names()
            if thrown == nil {
                #expect(names == ["a", "b"], "\(caused)")
            } else if names.contains("b") {
                // The name was given before the call that failed: then it is the whole copy, or could not be removed.
                #expect(try fixture.content("b") == FilesFixture.content, "\(caused)")
            } else {
                #expect(names.allSatisfy { $0 == "a" || StagedFile.isTemporaryName(FilePath($0) ?? "") }, "\(caused)")
            }
        }
        #expect(runs > 40)
    }
}

extension ProtectedFileSystem {
    func setPermissions(_ permissions: UInt32, _ path: FilePath) throws {
        let file = try system.openFile(path, [.read])
        try system.changePermissions(file.number, to: permissions)
    }
}

extension FilesFixture {
    func record(_ name: String) throws -> KeyRecord {
        try #require(try FileInspection.inspect(file(name)).record)
    }
}
