import FileProtection
import Synchronization
import Testing

/// Carries out the operations by calls of the library.
struct LibraryOperator: StateMatrixOperator {
    private let system: any SystemCalls = LinuxSystemCalls.shared

    /// What is no call of the table.
    struct UnknownOperation: Error {}

    func perform(_ stage: StateMatrixStage, _ protection: FileProtection) throws -> StateMatrix.Outcome {
        do {
            try run(stage, protection)
            return .ok
        } catch let error as ProtectionError {
            guard case .locked = error.code else { throw error }
            return .locked
        }
    }

    private func run(_ stage: StateMatrixStage, _ protection: FileProtection) throws {
        let cell = stage.cell
        let file = stage.file
        switch cell.operation {
        case "create a whole file":
            try protection.write(StateMatrixStage.plain, to: stage.new, class: cell.protectionClass)
            #expect(try protection.protectionClass(of: stage.new) == cell.protectionClass)
        case "create through a handle":
            let made = try protection.open(stage.new, for: .creating(cell.protectionClass))
            try made.write(StateMatrixStage.plain, at: 10)
            #expect(try made.read(200, at: 10) == StateMatrixStage.plain, "\(cell)")
            try made.close()
        case "create by the directory's class":
            try protection.write(StateMatrixStage.plain, to: stage.folder.appending("new"))
            #expect(try protection.protectionClass(of: stage.folder.appending("new")) == cell.protectionClass)
        case "protect a plain file": try convert(stage.plainFile, .protect(cell.protectionClass), protection)
        case "open for reading":
            #expect(try protection.open(file, for: .reading).allContent() == StateMatrixStage.content, "\(cell)")
        case "open for updating":
            let opened = try protection.open(file, for: .updating)
            try opened.write([1], at: 0)
            #expect(try opened.read(1, at: 0) == [1], "\(cell)")
        case "read the whole content":
            #expect(try protection.contents(of: file) == StateMatrixStage.content, "\(cell)")
        case "unprotect": try convert(file, .unprotect, protection)
        case "repair": #expect(try protection.files.repair(file).mended == [], "\(cell)")
        case "replace with the same class": try protection.write(StateMatrixStage.plain, to: file)
        case "replace with class none":
            try protection.write(StateMatrixStage.plain, to: file, class: ProtectionClass.none)
        case "read the class":
            #expect(try protection.protectionClass(of: file) == cell.protectionClass, "\(cell)")
        case "set the class of a directory":
            for other in ProtectionClass.allCases + [cell.protectionClass] {
                try protection.setProtectionClass(other, of: stage.folder)
                #expect(try protection.protectionClass(of: stage.folder) == other, "\(cell)")
            }
        case "take the class off a directory":
            #expect(try protection.files.removeDirectoryClass(stage.folder), "\(cell)")
            #expect(try protection.protectionClass(of: stage.folder) == nil, "\(cell)")
            #expect(try !protection.files.removeDirectoryClass(stage.folder), "\(cell)")
        default:
            if let target = StateMatrix.targetClass(of: cell.operation) {
                let change = try protection.setProtectionClass(
                    target, of: file, rekey: cell.operation.hasPrefix("rekey"))
                #expect(change.from == cell.protectionClass && change.to == target, "\(cell)")
                #expect(try protection.protectionClass(of: file) == target, "\(cell)")
            } else if let handle = stage.handle {
                try run(stage, through: handle, protection)
            } else {
                try runOnNames(stage, protection)
            }
        }
    }

    private func convert(_ path: FilePath, _ conversion: Conversion, _ protection: FileProtection) throws {
        let failure = Mutex<ProtectionError?>(nil)
        let count = Mutex(0)
        try protection.convert(path, conversion) { outcome in
            count.withLock { $0 += 1 }
            if case .failed(let error) = outcome.result { failure.withLock { $0 = error } }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        #expect(count.withLock { $0 } == 1)
    }

    /// What is done without the library. The class keys are beside the point, and so the state has to be.
    private func runOnNames(_ stage: StateMatrixStage, _ protection: FileProtection) throws {
        let file = stage.file
        switch stage.cell.operation {
        case "rename":
            try system.rename(
                file, in: currentDirectory, to: stage.folder.appending("moved"), in: currentDirectory,
                replacing: .forbidden)
            #expect(
                try protection.protectionClass(of: stage.folder.appending("moved")) == stage.cell.protectionClass)
        case "link":
            let opened = try system.openFile(file, [.read])
            try system.link(opened.number, to: stage.directory.appending("other"), in: currentDirectory)
        case "unlink": try system.unlink(file, in: currentDirectory)
        case "stat": #expect(try system.status(of: file, in: currentDirectory, followLinks: false).kind == .regular)
        case "change permissions":
            let opened = try system.openFile(file, [.read, .write])
            try system.changePermissions(opened.number, to: 0o640)
        case "change times":
            let time = FileTime(seconds: 1_000_000, nanoseconds: 7)
            let opened = try system.openFile(file, [.read, .write])
            try system.setTimes(opened.number, access: time, modification: time)
        case "set another attribute":
            let opened = try system.openFile(file, [.read, .write])
            try system.setAttribute("user.other", of: opened.number, to: [1, 2], replacing: .allowed)
        case "list a directory of the class":
            let opened = try system.openFile(stage.folder, [.read, .directory])
            #expect(try system.entries(opened.number).isEmpty)
        case "make a directory in one":
            try system.makeDirectory(stage.folder.appending("inner"), in: currentDirectory, permissions: 0o700)
        default: throw UnknownOperation()
        }
    }

    private func run(
        _ stage: StateMatrixStage, through handle: ProtectedFile, _ protection: FileProtection
    ) throws {
        let content = StateMatrixStage.content
        let cell = stage.cell
        switch cell.operation {
        case "read through a handle":
            #expect(try handle.read(5000, at: 4000) == Array(content[4000..<9000]), "\(cell)")
        case "write through a handle":
            try handle.write([9, 9, 9], at: 4095)
            #expect(try handle.read(5, at: 4094) == [content[4094], 9, 9, 9, content[4098]], "\(cell)")
        case "append through a handle":
            #expect(try StateMatrixStage.plain.withUnsafeBytes { try handle.append($0) } == 9000, "\(cell)")
            #expect(try handle.allContent() == content + StateMatrixStage.plain, "\(cell)")
        case "shorten through a handle":
            try handle.truncate(to: 4097)
            #expect(try handle.allContent() == Array(content[..<4097]), "\(cell)")
        case "lengthen through a handle":
            try handle.truncate(to: 9001)
            #expect(try handle.allContent() == content + [0], "\(cell)")
        case "length through a handle":
            #expect(try handle.length == 9000, "\(cell)")
            #expect(try handle.protectionClass == cell.protectionClass, "\(cell)")
        case "open a second handle":
            #expect(try protection.open(stage.file, for: .reading).allContent() == content, "\(cell)")
        case "fsync after a write": try handle.synchronize()
        case "close after a write": try handle.close()
        default: throw UnknownOperation()
        }
    }
}
