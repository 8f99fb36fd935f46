import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// The crash rule for operations on whole files: each image shows the file as before or as after, nothing else is
/// harmed, and the operation can be made again.
@Suite struct CrashOperationTests {
    typealias Broken = CrashScript.Broken

    /// Runs an operation under a recording, cuts the power everywhere, and looks at each image with `verify`, which is
    /// told whether the operation had returned. Then the operation is made again, and `finally` looks at the result.
    private func cutPower(
        _ name: String, _ fixture: FilesFixture, unnamed: Bool = true,
        _ operation: (ProtectedFileSystem, FilePath) throws -> Void,
        verify: (ProtectedFileSystem, FilePath, Bool) throws -> Void,
        finally: (ProtectedFileSystem, FilePath) throws -> Void
    ) throws {
        try CrashBystander.make(in: fixture)
        let root = fixture.directory.appending("files")
        let recording = try RecordingCalls(of: root, unnamed ? LinuxSystemCalls.shared : Self.withoutUnnamedFiles)
        try operation(ProtectedFileSystem(keys: fixture.keybag, system: recording.system), root)
        recording.mark("done")
        // Locked on purpose by some operations: what they made is looked at unlocked.
        if fixture.keybag.lockState == .locked { try fixture.unlock() }
        let files = fixture.files
        try finally(files, root)
        let report = try PowerCut(recording, .init(imagesPerPrefix: Effort.images)).check(name) { image in
            try verify(files, image.directory.path, image.has("done"))
            for name in try image.directory.names() where name.hasPrefix(".") {
                guard let path = FilePath(name), StagedFile.isTemporaryName(path) else {
                    throw Broken(description: "left behind: \(name)")
                }
            }
            try operation(files, image.directory.path)
            if fixture.keybag.lockState == .locked { try fixture.unlock() }
            try finally(files, image.directory.path)
            try CrashBystander.check(image.directory.path, fixture.keybag)
        }
        #expect(report.violationCount == 0, "\(report)")
        // Files without a name are no images: nobody can find them.
        #expect(report.imageCount > 2)
    }

    /// A file system that has no unnamed files, as some do not.
    private static let withoutUnnamedFiles: any SystemCalls = InterceptedSystemCalls(
        LinuxSystemCalls.shared,
        intercept: { (call) throws(SystemError) in
            if call.options?.contains(.unnamed) == true { throw call.failure(ErrorNumber.notSupported) }
            return .proceed
        })

    private func exists(_ path: FilePath) -> Bool {
        (try? LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)) != nil
    }

    private func plainContent(_ path: FilePath) throws -> [UInt8] {
        try SafeFile.read(
            path, in: currentDirectory, maximumSize: 1 << 24, ownerOnly: false, LinuxSystemCalls.shared)
    }

    private func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws {
        guard condition else { throw Broken(description: what()) }
    }

    @Test(arguments: [0, 5000, 78 * 4096 + 1])
    func aNewFileIsAbsentOrWhole(length: Int) throws {
        let content = pattern(length)
        try cutPower("new file of \(length) bytes", try FilesFixture()) { files, root in
            let path = root.appending("file")
            if exists(path) { try LinuxSystemCalls.shared.unlink(path, in: currentDirectory) }
            try files.write(content, to: path, class: .complete)
        } verify: { files, root, done in
            guard exists(root.appending("file")) else { return try expect(!done, "the file is gone") }
            try expect(try files.contents(of: root.appending("file")) == content, "half a file")
        } finally: { files, root in
            try expect(try files.contents(of: root.appending("file")) == content, "not written")
        }
    }

    @Test(arguments: [ProtectionClass.complete, .none], [true, false])
    func aReplacedFileIsOldOrNew(to wanted: ProtectionClass, unnamed: Bool) throws {
        let (old, new) = (pattern(9000, seed: 1), pattern(400_000, seed: 2))
        let fixture = try FilesFixture()
        try fixture.files.write(old, to: fixture.path("file"), class: .complete)
        let way = unnamed ? "" : ", temporary names"
        try cutPower("replacing by class \(wanted.name)\(way)", fixture, unnamed: unnamed) { files, root in
            try files.write(new, to: root.appending("file"), class: wanted)
        } verify: { files, root, done in
            let found = try files.contents(of: root.appending("file"))
            let foundClass = try files.protectionClass(of: root.appending("file"))
            if found == new { return try expect(foundClass == wanted, "new content, class \(foundClass as Any)") }
            try expect(found == old && foundClass == .complete && !done, "neither old nor new")
        } finally: { files, root in
            try expect(try files.contents(of: root.appending("file")) == new, "not replaced")
        }
    }

    /// Class B, created while locked, written through the handle that stayed open.
    @Test func aFileMadeWhileLockedIsAbsentOrHasWholeSteps() throws {
        let fixture = try FilesFixture()
        let (first, second) = (pattern(3000, seed: 1), pattern(2000, seed: 2))
        try cutPower("class B while locked", fixture) { files, root in
            let path = root.appending("file")
            if exists(path) { try LinuxSystemCalls.shared.unlink(path, in: currentDirectory) }
            try fixture.lock()
            let handle = try files.open(path, for: .creating(.completeUnlessOpen))
            try handle.write(first, at: 0)
            try handle.synchronize()
            try handle.write(second, at: 1000)
            try handle.close()
        } verify: { files, root, done in
            guard exists(root.appending("file")) else { return try expect(!done, "the file is gone") }
            let content = try files.contents(of: root.appending("file"))
            let last = Array(first[..<1000]) + second
            try expect(content == last || !done && [[], first].contains(content), "\(content.count) bytes of no step")
        } finally: { files, root in
            try expect(try files.contents(of: root.appending("file")) == Array(first[..<1000]) + second, "not written")
        }
    }

    @Test(arguments: [true, false])
    func aTreeIsProtectedFileByFile(unnamed: Bool) throws {
        let fixture = try FilesFixture()
        let contents = try Self.makeTree(fixture)
        let way = unnamed ? "" : ", temporary names"
        try cutPower("protect -r of \(contents.count) files\(way)", fixture, unnamed: unnamed) { files, root in
            try Self.convert(files, root, .protect(.complete))
        } verify: { files, root, done in
            for (name, content) in contents {
                let path = root.appending(name)
                switch try FileInspection.inspect(path).state {
                case .plain: try expect(try plainContent(path) == content && !done, "\(name) is lost as it was")
                case .protected: try expect(try files.contents(of: path) == content, "\(name) is lost")
                case let other: throw Broken(description: "\(name) is \(other)")
                }
            }
        } finally: { files, root in
            for (name, content) in contents {
                try expect(try files.contents(of: root.appending(name)) == content, "\(name) is not protected")
                try expect(try files.protectionClass(of: root.appending(name)) == .complete, "\(name) has no class")
            }
            try expect(try files.protectionClass(of: root.appending("inner")) == .complete, "no class for new files")
            try Self.expectNoLeftover(root)
        }
    }

    @Test func aTreeIsUnprotectedFileByFile() throws {
        let fixture = try FilesFixture()
        let contents = try Self.makeTree(fixture)
        try Self.convert(fixture.files, fixture.directory.appending("files"), .protect(.complete))
        // The bystander is protected and must stay so: it lies beside the tree.
        try cutPower("unprotect -r of \(contents.count) files", fixture) { files, root in
            for name in contents.keys.sorted(by: { $0.bytes.lexicographicallyPrecedes($1.bytes) }) {
                try Self.convert(files, root.appending(name), .unprotect)
            }
        } verify: { files, root, done in
            for (name, content) in contents {
                let path = root.appending(name)
                switch try FileInspection.inspect(path).state {
                case .plain: try expect(try plainContent(path) == content, "\(name) is lost")
                case .protected:
                    try expect(try files.contents(of: path) == content && !done, "\(name) is lost as it was")
                case let other: throw Broken(description: "\(name) is \(other)")
                }
            }
        } finally: { _, root in
            for (name, content) in contents {
                try expect(try plainContent(root.appending(name)) == content, "\(name) is not plain")
            }
        }
    }

    private static func makeTree(_ fixture: FilesFixture) throws -> [FilePath: [UInt8]] {
        try fixture.directory.makeDirectory("files/inner")
        let contents: [FilePath: [UInt8]] = [
            "empty": [], "one": pattern(1, seed: 3), "inner/two": pattern(5000, seed: 4),
            "inner/three": pattern(4096, seed: 5),
        ]
        for (name, content) in contents { try fixture.directory.write(content, to: FilePath("files/\(name)")!) }
        return contents
    }

    private static func convert(_ files: ProtectedFileSystem, _ path: FilePath, _ conversion: Conversion) throws {
        var options = TreeConversion.Options()
        options.recursive = true
        let failures = Mutex<[ProtectionError]>([])
        try TreeConversion(files, conversion, options: options) { outcome in
            if case .failed(let error) = outcome.result { failures.withLock { $0.append(error) } }
        }.run(path)
        if let error = failures.withLock({ $0.first }) { throw error }
    }

    /// A later run removes the temporary names that a crash left.
    private static func expectNoLeftover(_ root: FilePath) throws {
        for directory in [root, root.appending("inner")] {
            let opened = try LinuxSystemCalls.shared.openFile(directory, [.read, .directory])
            for entry in try LinuxSystemCalls.shared.entries(opened.number) where StagedFile.isTemporaryName(entry.name)
            {
                throw Broken(description: "left behind: \(entry.name)")
            }
        }
    }

    // MARK: - Classes and repair

    private static let changes: [(from: ProtectionClass, to: ProtectionClass)] = [
        (.completeUntilFirstUserAuthentication, .complete), (.complete, .none), (.none, .completeUnlessOpen),
        (.completeUnlessOpen, .completeUntilFirstUserAuthentication), (.complete, .completeUnlessOpen),
    ]

    @Test(arguments: changes, [false, true])
    func aChangeOfClassIsMadeOrNot(_ change: (from: ProtectionClass, to: ProtectionClass), rekey: Bool) throws {
        let fixture = try FilesFixture()
        let content = pattern(6000)
        let path = fixture.path("file")
        try fixture.files.write(content, to: path, class: change.from)
        let name = "\(rekey ? "rekey" : "set-class") from \(change.from.name) to \(change.to.name)"
        try cutPower(name, fixture) { files, root in
            _ = try files.setProtectionClass(of: root.appending("file"), to: change.to, rekey: rekey)
        } verify: { files, root, done in
            let path = root.appending("file")
            try expect(try files.contents(of: path) == content, "the content is lost")
            let inspection = try FileInspection.inspect(path, comparingHeaders: true)
            guard let found = inspection.protectionClass, inspection.state == .protected else {
                throw Broken(description: "no class: \(inspection)")
            }
            try expect(found == change.to || found == change.from && !done, "class \(found.name)")
            try expect(!done || inspection.place == .both, "promised, but the copies of the record differ")
            // What the handle obeys must be what counts.
            let handle = try files.open(path, for: .updating)
            try fixture.lock()
            defer { try? fixture.unlock() }
            let isLocked = code { try handle.length } == .locked(.complete)
            try expect(isLocked == (found == .complete), "class \(found.name), a handle after lock: \(isLocked)")
        } finally: { files, root in
            let inspection = try FileInspection.inspect(root.appending("file"), comparingHeaders: true)
            try expect(inspection.protectionClass == change.to && inspection.place == .both, "not changed")
            try expect(try files.contents(of: root.appending("file")) == content, "the content is lost at last")
        }
    }

    enum Fault: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case attributeMissing, attributeWeaker, slotDamaged, writeInterrupted
        var testDescription: String { rawValue }
    }

    @Test(arguments: Fault.allCases)
    func aRepairHarmsNothing(fault: Fault) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        var content = pattern(6000)
        try fixture.files.write(content, to: path, class: .completeUntilFirstUserAuthentication)
        let old = try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: path, in: currentDirectory)
        if fault == .attributeWeaker { _ = try fixture.files.setProtectionClass(of: path, to: .complete) }
        do {
            let file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
            switch fault {
            case .attributeMissing:
                try LinuxSystemCalls.shared.removeAttribute(KeyRecord.attributeName, of: file.number)
            case .attributeWeaker:
                try LinuxSystemCalls.shared.setAttribute(
                    KeyRecord.attributeName, of: file.number, to: old ?? [], replacing: .allowed)
            case .slotDamaged:
                try [UInt8](repeating: 0xAA, count: 16).withUnsafeBytes {
                    try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 300)
                }
            case .writeInterrupted:
                // A handle that goes away without being closed, as in a killed process.
                let handle = try fixture.files.open(path, for: .updating)
                try handle.write([1, 2, 3], at: 5999)
                content.replaceSubrange(5999..., with: [1, 2, 3])
            }
        }
        let wanted: ProtectionClass = fault == .attributeWeaker ? .complete : .completeUntilFirstUserAuthentication
        try cutPower("repair: \(fault.rawValue)", fixture) { files, root in
            _ = try files.repair(root.appending("file"))
        } verify: { files, root, done in
            try expect(try files.contents(of: root.appending("file")) == content, "the content is lost")
            let inspection = try FileInspection.inspect(root.appending("file"), comparingHeaders: true)
            try expect(inspection.protectionClass == wanted, "class \(inspection)")
            try expect(!done || inspection.place == .both, "promised, but the copies differ")
        } finally: { files, root in
            try expect(try files.repair(root.appending("file")).mended.isEmpty, "not mended")
            try expect(try files.contents(of: root.appending("file")) == content, "the content is lost at last")
        }
    }

    /// A change of class in the middle of unsynced writes keeps them.
    @Test func aChangeOfClassKeepsAnOpenLog() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        var content = pattern(9000)
        try fixture.files.write(content, to: path, class: .completeUntilFirstUserAuthentication)
        let writer = try fixture.files.open(path, for: .updating)
        try writer.write([9, 9, 9], at: 5000)
        content.replaceSubrange(5000..<5003, with: [9, 9, 9])
        try cutPower("set-class under an open log", fixture) { files, root in
            _ = try files.setProtectionClass(of: root.appending("file"), to: .complete)
        } verify: { files, root, _ in
            try expect(try files.contents(of: root.appending("file")) == content, "the write is lost")
        } finally: { files, root in
            try expect(try files.contents(of: root.appending("file")) == content, "the write is lost at last")
            try expect(try files.protectionClass(of: root.appending("file")) == .complete, "not changed")
        }
        try writer.close()
        #expect(try fixture.files.contents(of: path) == content)
    }
}
