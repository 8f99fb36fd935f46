import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Replacements in which a call fails, or which are killed.
@Suite struct FileManagerReplaceFailuresTests {
    private let manager = FileManager.default
    private static let new = Data("new content".utf8)

    /// An item to replace, of each kind of replacement.
    enum Scene: String, CaseIterable, Codable, Sendable {
        case protectedFile, plainFile, plainTree, treeWithClass, fileByTree

        func make(_ fixture: FilesFixture) throws {
            switch self {
            case .protectedFile, .fileByTree: try fixture.protect("a", .complete)
            case .plainFile: try fixture.write("a")
            case .plainTree:
                try fixture.makeDirectory("a")
                try fixture.write("a/old")
            case .treeWithClass:
                try fixture.makeDirectory("a", .complete)
                try fixture.protect("a/old", .complete)
            }
            try makeNew(fixture)
        }

        /// The item that takes its place.
        func makeNew(_ fixture: FilesFixture) throws {
            switch self {
            case .protectedFile, .plainFile: try fixture.write("b", FileManagerReplaceFailuresTests.new)
            case .plainTree, .treeWithClass, .fileByTree:
                try fixture.makeDirectory("b")
                try fixture.write("b/new", FileManagerReplaceFailuresTests.new)
            }
        }

        var isProtected: Bool { self != .plainFile && self != .plainTree }

        /// What is in the place of `name`: the whole old content or the whole new.
        enum Found: Equatable { case old, new, nothing, other }

        func found(_ fixture: FilesFixture, _ name: String) throws -> Found {
            guard FileManager.default.fileExists(atPath: fixture.path(name)) else { return .nothing }
            let isTree = (try? fixture.names(name)) != nil
            // A conversion that was ended may leave a temporary name, which the next one sweeps.
            let names =
                isTree ? try fixture.names(name).filter { !FileManagerReplaceFailuresTests.isLeftover($0) } : [""]
            guard names.count == 1 else { return .other }
            let path = isTree ? name + "/" + names[0] : name
            let content =
                try fixture.protectionClass(path) == nil ? fixture.bytes(path) : try fixture.content(path)
            switch content {
            case FilesFixture.content where names[0] != "new": return .old
            case FileManagerReplaceFailuresTests.new where names[0] != "old": return .new
            default: return .other
            }
        }
    }

    fileprivate static func isLeftover(_ name: String) -> Bool {
        FilePath(name).map { HiddenName($0) != nil || StagedFile.isTemporaryName($0) } ?? false
    }

    @Test(arguments: [
        (Scene.plainFile, false), (.protectedFile, true), (.treeWithClass, false), (.treeWithClass, true),
    ])
    func whicheverCallFailsTheOldOrTheNewIsThereAndNoBackupIsLost(
        _ scene: Scene, _ afterwards: Bool
    ) throws {
        let armed = Mutex(false)
        let runs = try failingEveryCall(
            errorNumbers: [EIO], afterwards: afterwards, matching: { _ in armed.withLock { $0 } }
        ) {
            try FilesFixture()
        } _: { fixture, system in
            try scene.make(fixture)
            let protection = try fixture.opened(system)
            armed.withLock { $0 = true }
            defer { armed.withLock { $0 = false } }
            try Keys.$given.withValue(.success(protection)) {
                _ = try manager.replaceItemAt(
                    fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept",
                    options: .withoutDeletingBackupItem)
            }
        } check: { fixture, caused, thrown in
            let found = try scene.found(fixture, "a")
            #expect(found == .new || (thrown != nil && found == .old), "\(caused): \(found)")
            if found == .new {
                #expect(try scene.found(fixture, "kept") == .old, "\(caused): the backup is lost")
            } else {
                // Then the new item is where it was.
                #expect(try scene.found(fixture, "b") == .new, "\(caused)")
            }
            let others = try fixture.names().filter { !["a", "b", "kept"].contains($0) }
            #expect(others.allSatisfy(Self.isLeftover), "\(caused): \(others)")
            if thrown == nil {
                #expect(try fixture.names() == ["a", "kept"], "\(caused)")
                if scene.isProtected { #expect(try fixture.protectionClass("a") == .complete, "\(caused)") }
            }
        }
        #expect(runs > 20)
    }

    @Test func aNewItemThatCannotBeRemovedIsSaidAndTheBackupStays() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("b", Self.new)
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            guard call.operation == .unlink, call.path?.lastComponent == "b" else { return .proceed }
            throw call.failure(EPERM)
        }
        let protection = try fixture.opened(system)
        Keys.$given.withValue(.success(protection)) {
            do {
                _ = try manager.replaceItemAt(
                    fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept",
                    options: .withoutDeletingBackupItem)
                Issue.record("nobody was told")
            } catch {
                let error = error as NSError
                #expect(error.code == 513)
                #expect(error.userInfo[NSFilePathErrorKey] as? String == fixture.path("b"))
                let reason = error.userInfo[NSLocalizedFailureReasonErrorKey] as? String
                #expect(reason?.hasPrefix("The item was replaced, but") == true)
            }
        }
        #expect(try fixture.content("a") == Self.new)
        #expect(try fixture.content("kept") == FilesFixture.content)
        #expect(try fixture.names() == ["a", "b", "kept"])
    }

    /// An attribute of the file system keeps the item where it is, from the privileged too.
    @Test func anItemThatNobodyMayRemoveLosesNothing() throws {
        for name in ["b", "a/old"] {
            let fixture = try FilesFixture()
            let isTree = name == "a/old"
            try (isTree ? Scene.treeWithClass : .protectedFile).make(fixture)
            guard try Command.run("chattr", ["+i", fixture.path(name)]).status == 0 else { return }
            defer {
                for place in [name, "b"] + ((try? fixture.names()) ?? []).map({ $0 + "/old" }) {
                    _ = try? Command.run("chattr", ["-i", fixture.path(place)])
                }
            }
            let found = fixture.run {
                thrownBy {
                    try manager.replaceItemAt(
                        fixture.url("a"), withItemAt: fixture.url("b"), backupItemName: "kept",
                        options: .withoutDeletingBackupItem)
                }
            }
            #expect(found?.code == 513, "\(name)")
            #expect(try Scene.plainTree.found(fixture, "a") == .new, "\(name)")
            #expect(try Scene.plainTree.found(fixture, "kept") == .old, "\(name)")
        }
    }

    @Test(arguments: [EINVAL, ENOSYS, EOPNOTSUPP]) func whereNamesCannotBeExchangedTheOriginalWaitsUnderAnother(
        _ number: Int32
    ) throws {
        for fails in [false, true] {
            let fixture = try FilesFixture()
            try Scene.treeWithClass.make(fixture)
            let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
                guard call.operation == .rename else { return .proceed }
                if call.replacing == .required { throw call.failure(number) }
                if fails, call.source?.lastComponent == "b" { throw call.failure(EIO) }
                return .proceed
            }
            let protection = try fixture.opened(system)
            let found = Keys.$given.withValue(.success(protection)) {
                thrownBy { try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) }
            }
            #expect((found != nil) == fails)
            #expect(try Scene.treeWithClass.found(fixture, "a") == (fails ? .old : .new))
            #expect(try fixture.names() == (fails ? ["a", "b"] : ["a"]))
        }
    }

    @Test func whatIsProtectedMeanwhileIsNotReplacedUnseen() throws {
        let fixture = try FilesFixture()
        try Scene.plainFile.make(fixture)
        let isDone = Mutex(false)
        let other = Data("his".utf8)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                // The new content is made durable before it gets the name.
                guard call.operation == .open, call.path?.lastComponent == "b" else { return }
                let isFirst = isDone.withLock { isDone in
                    defer { isDone = true }
                    return !isDone
                }
                if isFirst { try? fixture.protect("a", .complete, other) }
            })
        let protection = try fixture.opened(system)
        Keys.$given.withValue(.success(protection)) {
            let found = thrownBy { try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b")) }
            #expect(found?.code == 512)
        }
        #expect(isDone.withLock { $0 })
        #expect(try fixture.content("a") == other)
        #expect(fixture.bytes("b") == Self.new)
    }

    /// What a child of a kill test is told.
    struct Killed: Codable, Sendable {
        let scene: Scene
        let directory: String
        /// Which of the calls that change something is its last, counted from 1.
        let call: Int
    }

    /// Replaces, and is killed before the call of that number.
    private static func replace(_ killed: Killed) throws -> Int {
        let count = Mutex(0)
        let isArmed = Mutex(false)
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { (call) throws(SystemError) in
            guard call.isMutation, isArmed.withLock({ $0 }) else { return .proceed }
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == killed.call { kill(getpid(), SIGKILL) }
            return .proceed
        }
        let root = FilePath(killed.directory) ?? "."
        let protection = try FilesFixture.opened(
            KeybagHome(directory: root.appending("home")), system)
        isArmed.withLock { $0 = true }
        try Keys.$given.withValue(.success(protection)) {
            _ = try FileManager.default.replaceItemAt(
                URL(fileURLWithPath: killed.directory + "/files/a"),
                withItemAt: URL(fileURLWithPath: killed.directory + "/files/b"))
        }
        return count.withLock { $0 }
    }

    @Test(arguments: Scene.allCases)
    func killedAtAnyCallItLeavesTheOldOrTheNewAndTheNextCallTidiesUp(
        _ scene: Scene
    ) async throws {
        let whole = try FilesFixture()
        try scene.make(whole)
        let count = try Self.replace(Killed(scene: scene, directory: whole.directory.path.description, call: 0))
        #expect(count > 0)
        for call in 1...max(count, 1) {
            let fixture = try FilesFixture()
            try scene.make(fixture)
            let killed = Killed(scene: scene, directory: fixture.directory.path.description, call: call)
            await #expect(processExitsWith: .signal(SIGKILL)) { [killed = killed as Killed] in
                _ = try FileManagerReplaceFailuresTests.replace(killed)
            }
            let found = try scene.found(fixture, "a")
            #expect(found == .old || found == .new, "killed at \(call): \(found)")
            if found == .old { #expect(try scene.found(fixture, "b") == .new, "killed at \(call)") }
            // The next one finds nothing in its way.
            if try scene.found(fixture, "b") != .nothing { try manager.removeItem(at: fixture.url("b")) }
            try scene.makeNew(fixture)
            try fixture.run {
                _ = try manager.replaceItemAt(fixture.url("a"), withItemAt: fixture.url("b"))
            }
            #expect(try scene.found(fixture, "a") == .new)
            let left = try fixture.names().filter { $0 != "a" }
            #expect(left.allSatisfy { FilePath($0).map(StagedFile.isTemporaryName) ?? false }, "\(call): \(left)")
        }
    }
}
