import FileProtection
import TestSupport
import Testing

/// The files of one cell in a directory of their own, with a handle on one of them where the operation wants one.
final class StateMatrixStage {
    static let content = pattern(9000)
    static let plain = pattern(100, seed: 9)
    /// What lies in the file from 100 on, where the operation is one "after a write".
    static let written = pattern(500, seed: 5)

    let cell: StateMatrix.Cell
    let directory: FilePath
    private(set) var handle: ProtectedFile?
    private let system: any SystemCalls = LinuxSystemCalls.shared

    var file: FilePath { directory.appending("file") }
    var new: FilePath { directory.appending("new") }
    var plainFile: FilePath { directory.appending("plain") }
    var folder: FilePath { directory.appending("folder") }

    private var isAfterAWrite: Bool { cell.operation.contains("after a write") }
    private var wantsHandle: Bool {
        (cell.operation.contains("handle") || isAfterAWrite) && !cell.operation.hasPrefix("create")
    }

    /// Makes the files, and the handle unless it has to be made in the state. While unlocked.
    init(_ cell: StateMatrix.Cell, in directory: FilePath, _ protection: FileProtection) throws {
        self.cell = cell
        self.directory = directory
        try system.makeDirectory(directory, in: currentDirectory, permissions: 0o700)
        let made = try system.openFile(plainFile, [.write, .create, .exclusive], permissions: 0o600)
        try Self.plain.withUnsafeBytes { try system.writeFully(made.number, $0) }
        try system.makeDirectory(folder, in: currentDirectory, permissions: 0o700)
        try protection.setProtectionClass(cell.protectionClass, of: folder)
        try protection.write(Self.content, to: file, class: cell.protectionClass)
        guard wantsHandle, cell.state != .beforeFirstUnlock else { return }
        let opened = try protection.open(file, for: .updating)
        if isAfterAWrite { try opened.write(Self.written, at: 100) }
        handle = opened
    }

    /// The state has come. Only a file that it can create can be open in it before the first unlock.
    func enter(_ protection: FileProtection) throws {
        guard wantsHandle, cell.state == .beforeFirstUnlock else { return }
        try system.unlink(file, in: currentDirectory)
        let made = try protection.open(file, for: .creating(cell.protectionClass))
        try made.write(Self.content, at: 0)
        handle = made
    }

    /// Names, bytes and attributes of everything.
    func fingerprint() throws -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        for name in try names(in: directory) where name != "folder" {
            let path = directory.appending(FilePath(name) ?? ".")
            let opened = try system.openFile(path, [.read])
            result[name] = try rawContent(path)
            result[name + " record"] = try system.attribute(KeyRecord.attributeName, of: opened.number) ?? []
        }
        result["folder"] = try names(in: folder).flatMap { Array($0.utf8) }
        let opened = try system.openFile(folder, [.read, .directory])
        result["folder record"] = try system.attribute(KeyRecord.attributeName, of: opened.number) ?? []
        return result
    }

    private func names(in directory: FilePath) throws -> [String] {
        let opened = try system.openFile(directory, [.read, .directory])
        return try system.entries(opened.number).map(\.name.description).sorted()
    }

    private func rawContent(_ path: FilePath) throws -> [UInt8] {
        try SafeFile.read(path, in: currentDirectory, maximumSize: 1 << 30, ownerOnly: false, system)
    }

    // MARK: What has come of it

    /// Looks at the effect of an operation that worked, through the eyes of somebody with all keys.
    func checkEffect(_ witness: FileProtection) throws {
        let operation = cell.operation
        switch operation {
        case "create a whole file": try expect(new, Self.plain, cell.protectionClass, witness)
        case "create through a handle":
            try expect(new, [UInt8](repeating: 0, count: 10) + Self.plain, cell.protectionClass, witness)
        case "create by the directory's class":
            try expect(folder.appending("new"), Self.plain, cell.protectionClass, witness)
        case "protect a plain file": try expect(plainFile, Self.plain, cell.protectionClass, witness)
        case "unprotect":
            #expect(try rawContent(file) == Self.content, "\(cell)")
            #expect(try witness.protectionClass(of: file) == nil, "\(cell)")
        case "replace with the same class": try expect(file, Self.plain, cell.protectionClass, witness)
        case "replace with class none": try expect(file, Self.plain, ProtectionClass.none, witness)
        case "rename":
            #expect(try names(in: directory) == ["folder", "plain"], "\(cell)")
            try expect(folder.appending("moved"), Self.content, cell.protectionClass, witness)
        case "link":
            try expect(directory.appending("other"), Self.content, cell.protectionClass, witness)
            try expect(file, Self.content, cell.protectionClass, witness)
        case "unlink": #expect(try names(in: directory) == ["folder", "plain"], "\(cell)")
        case "make a directory in one":
            #expect(try names(in: folder) == ["inner"], "\(cell)")
            #expect(try witness.protectionClass(of: folder) == cell.protectionClass, "\(cell)")
        case "set the class of a directory":
            #expect(try witness.protectionClass(of: folder) == cell.protectionClass, "\(cell)")
        case "take the class off a directory": #expect(try witness.protectionClass(of: folder) == nil, "\(cell)")
        default:
            try checkAttributes()
            try expect(
                file, expectedContent, StateMatrix.targetClass(of: operation) ?? cell.protectionClass, witness)
        }
    }

    /// Looks at what a refused operation has left: everything.
    func checkNothingIsLost(_ witness: FileProtection) throws {
        try expect(file, Self.content, cell.protectionClass, witness)
        #expect(try rawContent(plainFile) == Self.plain, "\(cell)")
    }

    private func expect(
        _ path: FilePath, _ content: [UInt8], _ protectionClass: ProtectionClass, _ witness: FileProtection
    ) throws {
        #expect(try witness.protectionClass(of: path) == protectionClass, "\(cell)")
        let found = try witness.contents(of: path)
        #expect(found == content, "\(cell): \(found.count) bytes where \(content.count) other ones should be")
    }

    private func checkAttributes() throws {
        let opened = try system.openFile(file, [.read])
        let status = try system.status(opened.number)
        switch cell.operation {
        case "change permissions": #expect(status.permissions == 0o640, "\(cell)")
        case "change times":
            #expect(status.modificationTime == FileTime(seconds: 1_000_000, nanoseconds: 7), "\(cell)")
        case "set another attribute":
            #expect(try system.attribute("user.other", of: opened.number) == [1, 2], "\(cell)")
        default: break
        }
    }

    /// The content of the file where the operation leaves it in place.
    private var expectedContent: [UInt8] {
        var content = Self.content
        switch cell.operation {
        case "open for updating": content[0] = 1
        case "write through a handle": content.replaceSubrange(4095..<4098, with: [9, 9, 9])
        case "append through a handle": content += Self.plain
        case "shorten through a handle": content.removeSubrange(4097...)
        case "lengthen through a handle": content.append(0)
        default:
            if isAfterAWrite, cell.state != .beforeFirstUnlock {
                content.replaceSubrange(100..<600, with: Self.written)
            }
        }
        return content
    }
}
