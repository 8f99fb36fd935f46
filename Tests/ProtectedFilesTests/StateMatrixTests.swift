import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// The table of ``StateMatrix``, cell by cell.
@Suite struct StateMatrixTests {
    @Test(arguments: Array(Set(StateMatrix.cells.map(\.operation))).sorted())
    func everyCellIsAsTheTableSays(operation: String) throws {
        for cell in StateMatrix.cells where cell.operation == operation && cell.outcome != .absent {
            let stage = try StateMatrixStage(cell)
            let before = try stage.fingerprint()
            do {
                try stage.run()
                #expect(cell.outcome == .ok, "\(cell): worked")
            } catch let error as ProtectionError {
                guard case .locked = error.code, cell.outcome == .locked else {
                    Issue.record("\(cell): \(error)")
                    continue
                }
                #expect(try stage.fingerprint() == before, "\(cell): refused, but something changed")
            }
        }
    }

    /// A table that lost a row would prove nothing.
    @Test func theTableHasEveryStateOfEveryOperation() {
        let byOperation = Dictionary(grouping: StateMatrix.cells, by: \.operation)
        #expect(byOperation.count == 40)
        for (operation, cells) in byOperation {
            let states = Set(cells.map(\.state))
            #expect(states.isSuperset(of: [.beforeFirstUnlock, .unlocked, .locked]), "\(operation)")
            #expect(cells.count == states.count * ProtectionClass.allCases.count, "\(operation)")
        }
    }
}

/// One cell: a file of the class, brought into the state, with a handle on it where the operation wants one.
private struct StateMatrixStage {
    let cell: StateMatrix.Cell
    let fixture: FilesFixture
    /// The keybag that the operation sees.
    let files: ProtectedFileSystem
    let handle: ProtectedFile?

    private static let content = pattern(9000)
    private static let plain = pattern(100, seed: 9)

    var path: FilePath { fixture.path("file") }
    private var folder: FilePath { fixture.path("folder") }
    private var protectionClass: ProtectionClass { cell.protectionClass }

    init(_ cell: StateMatrix.Cell) throws {
        self.cell = cell
        let fixture = try FilesFixture()
        self.fixture = fixture
        let path = fixture.path("file")
        let system = LinuxSystemCalls.shared
        try fixture.directory.write(Self.plain, to: "files/plain")
        try fixture.directory.makeDirectory("files/folder")
        _ = try fixture.files.setProtectionClass(of: fixture.path("folder"), to: cell.protectionClass)
        let wantsHandle = cell.operation.contains("handle") || cell.operation.contains("after a write")
        switch cell.state {
        case .beforeFirstUnlock:
            try fixture.files.write(Self.content, to: path, class: cell.protectionClass)
            let keybag = try Keybag.open(
                KeybagHome(directory: fixture.directory.appending("home")), clock: fixture.clock)
            files = ProtectedFileSystem(keys: keybag)
            guard wantsHandle, !cell.operation.hasPrefix("create") else { handle = nil; break }
            // Only a file that this state creates can be open in it.
            try system.unlink(path, in: currentDirectory)
            handle = try files.open(path, for: .creating(cell.protectionClass))
            try handle?.write(Self.content, at: 0)
        default:
            files = fixture.files
            try files.write(Self.content, to: path, class: cell.protectionClass)
            handle = wantsHandle && !cell.operation.hasPrefix("create") ? try files.open(path, for: .updating) : nil
            if cell.operation.contains("after a write") { try handle?.write(pattern(500, seed: 5), at: 100) }
            if cell.state == .locked || cell.state == .unlockedAgain { try fixture.lock() }
            if cell.state == .unlockedAgain { try fixture.unlock() }
        }
        #expect(files.keys.lockState.rawValue.hasPrefix(cell.state == .unlockedAgain ? "unlocked" : stateName))
    }

    private var stateName: String {
        switch cell.state {
        case .beforeFirstUnlock: "before-first-unlock"
        case .unlocked, .unlockedAgain: "unlocked"
        case .locked: "locked"
        }
    }

    /// Names, bytes and attributes of everything.
    func fingerprint() throws -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        let system = LinuxSystemCalls.shared
        for name in try fixture.directory.names(in: "files") where name != "folder" {
            let opened = try system.openFile(FilePath("files/\(name)")!, in: fixture.directory.descriptor, [.read])
            result[name] = try fixture.directory.read(FilePath("files/\(name)")!)
            result[name + " record"] = try system.attribute(KeyRecord.attributeName, of: opened.number) ?? []
        }
        result["folder"] = try fixture.directory.names(in: "files/folder").flatMap { Array($0.utf8) }
        return result
    }

    /// What the content is now, seen by somebody with all keys.
    private func contentNow(_ path: FilePath) throws -> [UInt8] {
        if fixture.keybag.lockState != .unlocked { try fixture.unlock() }
        return try fixture.files.contents(of: path)
    }

    private func classNow(_ path: FilePath) throws -> ProtectionClass? { try fixture.files.protectionClass(of: path) }

    func run() throws {
        let system = LinuxSystemCalls.shared
        switch cell.operation {
        case "create a whole file":
            try files.write(Self.plain, to: fixture.path("new"), class: protectionClass)
            #expect(try classNow(fixture.path("new")) == protectionClass)
            #expect(try contentNow(fixture.path("new")) == Self.plain)
        case "create through a handle":
            let made = try files.open(fixture.path("new"), for: .creating(protectionClass))
            try made.write(Self.plain, at: 10)
            #expect(try made.read(200, at: 10) == Self.plain)
            try made.close()
            #expect(try contentNow(fixture.path("new")) == [UInt8](repeating: 0, count: 10) + Self.plain)
        case "create by the directory's class":
            try files.write(Self.plain, to: folder.appending("new"))
            #expect(try classNow(folder.appending("new")) == protectionClass)
        case "protect a plain file":
            try convert("plain", .protect(protectionClass))
            #expect(try classNow(fixture.path("plain")) == protectionClass)
            #expect(try contentNow(fixture.path("plain")) == Self.plain)
        case "open for reading":
            #expect(try files.open(path, for: .reading).allContent() == Self.content)
        case "open for updating":
            let opened = try files.open(path, for: .updating)
            try opened.write([1], at: 0)
            #expect(try opened.read(1, at: 0) == [1])
        case "read the whole content": #expect(try files.contents(of: path) == Self.content)
        case "unprotect":
            try convert("file", .unprotect)
            #expect(try fixture.directory.read("files/file") == Self.content)
            #expect(try classNow(path) == nil)
        case "repair": #expect(try files.repair(path).mended == [])
        case "replace with the same class", "replace with class none":
            let wanted = cell.operation == "replace with class none" ? ProtectionClass.none : nil
            try files.write(Self.plain, to: path, class: wanted)
            #expect(try classNow(path) == wanted ?? protectionClass)
            #expect(try contentNow(path) == Self.plain)
        case "rename":
            try system.rename(
                path, in: currentDirectory, to: folder.appending("moved"), in: currentDirectory, replacing: .forbidden)
            #expect(try classNow(folder.appending("moved")) == protectionClass)
            #expect(try contentNow(folder.appending("moved")) == Self.content)
        case "link":
            let opened = try system.openFile(path, [.read])
            try system.link(opened.number, to: fixture.path("other"), in: currentDirectory)
            #expect(try contentNow(fixture.path("other")) == Self.content)
        case "unlink": try system.unlink(path, in: currentDirectory)
        case "stat": #expect(try system.status(of: path, in: currentDirectory, followLinks: false).kind == .regular)
        case "change permissions", "change times", "set another attribute": try changeAttributes()
        case "read the class": #expect(try files.protectionClass(of: path) == protectionClass)
        case "list a directory of the class": #expect(try fixture.directory.names(in: "files/folder") == [])
        case "make a directory in one": try fixture.directory.makeDirectory("files/folder/inner")
        case "set the class of a directory":
            for other in ProtectionClass.allCases + [protectionClass] {
                _ = try files.setProtectionClass(of: folder, to: other)
                #expect(try files.protectionClass(of: folder) == other)
            }
        case "take the class off a directory":
            #expect(try files.removeDirectoryClass(folder))
            #expect(try files.protectionClass(of: folder) == nil)
            #expect(try !files.removeDirectoryClass(folder))
        default:
            if let target = Self.target(of: cell.operation) {
                let change = try files.setProtectionClass(
                    of: path, to: target, rekey: cell.operation.hasPrefix("rekey"))
                #expect(change.from == protectionClass && change.to == target)
                #expect(try classNow(path) == target)
                #expect(try contentNow(path) == Self.content)
            } else {
                try runThroughHandle()
            }
        }
    }

    private func convert(_ name: String, _ conversion: Conversion) throws {
        let failure = Shared<ProtectionError?>(nil)
        try TreeConversion(files, conversion) { outcome in
            if case .failed(let error) = outcome.result { failure.value.withLock { $0 = error } }
        }.run(fixture.path(FilePath(name)!))
        if let error = failure.value.withLock({ $0 }) { throw error }
    }

    private func changeAttributes() throws {
        let system = LinuxSystemCalls.shared
        let opened = try system.openFile(path, [.read, .write])
        try system.changePermissions(opened.number, to: 0o640)
        let time = FileTime(seconds: 1_000_000, nanoseconds: 7)
        try system.setAttribute("user.other", of: opened.number, to: [1, 2], replacing: .allowed)
        try system.setTimes(opened.number, access: time, modification: time)
        let status = try system.status(opened.number)
        #expect(status.permissions == 0o640 && status.modificationTime == time)
        #expect(try contentNow(path) == Self.content)
    }

    private static func target(of operation: String) -> ProtectionClass? {
        guard operation.hasPrefix("change class to ") || operation.hasPrefix("rekey to ") else { return nil }
        switch operation.split(separator: " ").last {
        case "complete": return .complete
        case "B": return .completeUnlessOpen
        case "C": return .completeUntilFirstUserAuthentication
        default: return ProtectionClass.none
        }
    }

    private func runThroughHandle() throws {
        guard let handle else { preconditionFailure("\(cell)") }
        switch cell.operation {
        case "read through a handle": #expect(try handle.read(5000, at: 4000) == Array(Self.content[4000..<9000]))
        case "write through a handle":
            try handle.write([9, 9, 9], at: 4095)
            #expect(try handle.read(5, at: 4094) == [Self.content[4094], 9, 9, 9, Self.content[4098]])
        case "append through a handle":
            #expect(try Self.plain.withUnsafeBytes { try handle.append($0) } == 9000)
            #expect(try handle.allContent() == Self.content + Self.plain)
        case "shorten through a handle":
            try handle.truncate(to: 4097)
            #expect(try handle.allContent() == Array(Self.content[..<4097]))
        case "lengthen through a handle":
            try handle.truncate(to: 9001)
            #expect(try handle.allContent() == Self.content + [0])
        case "length through a handle":
            #expect(try handle.length == 9000)
            #expect(try handle.protectionClass == protectionClass)
        case "open a second handle": #expect(try files.open(path, for: .reading).allContent() == Self.content)
        case "fsync after a write", "close after a write":
            if cell.operation.hasPrefix("fsync") { try handle.synchronize() } else { try handle.close() }
            var expected = Self.content
            if cell.state != .beforeFirstUnlock { expected.replaceSubrange(100..<600, with: pattern(500, seed: 5)) }
            #expect(try contentNow(path) == expected)
        default: preconditionFailure("no such operation: \(cell)")
        }
    }
}
