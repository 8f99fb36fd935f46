import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Every system call of every operation fails once, and every one from there on: the file is as before or as after, the
/// error says what it was, nothing is left behind, and the operation can be made again.
@Suite struct FaultTests {
    typealias Broken = CrashScript.Broken
    static let old = pattern(9000, seed: 1)
    static let new = pattern(20_000, seed: 2)

    /// One operation on "file", which exists in class A, and the contents that may be found when it failed.
    struct Operation: Sendable, CustomTestStringConvertible {
        let name: String
        let allowed: [[UInt8]]
        let run: @Sendable (ProtectedFileSystem, FilePath) throws -> Void
        var testDescription: String { name }
    }

    private static func handle(
        _ name: String, allowed: [[UInt8]], _ body: @escaping @Sendable (ProtectedFile) throws -> Void
    ) -> Operation {
        Operation(name: name, allowed: [old] + allowed) { files, path in
            let handle = try files.open(path, for: .updating)
            try body(handle)
            try handle.close()
        }
    }

    static func replacing(_ range: Range<Int>, in content: [UInt8], with bytes: [UInt8]) -> [UInt8] {
        var content = content
        content.replaceSubrange(range, with: bytes)
        return content
    }

    static let patch = pattern(5000, seed: 3)
    private static let patched = replacing(2000..<7000, in: old, with: patch)

    static let operations: [Operation] = [
        Operation(name: "replace", allowed: [old, new]) { files, path in try files.write(new, to: path) },
        handle("overwrite", allowed: [patched]) { try $0.write(patch, at: 2000) },
        handle("append", allowed: [old + new]) { handle in try new.withUnsafeBytes { _ = try handle.append($0) } },
        handle("shrink", allowed: [Array(old[..<5000])]) { try $0.truncate(to: 5000) },
        handle("shrink to a border", allowed: [Array(old[..<4096])]) { try $0.truncate(to: 4096) },
        handle("grow", allowed: [old + [UInt8](repeating: 0, count: 3288), old + [UInt8](repeating: 0, count: 11_000)])
        {
            try $0.truncate(to: 20_000)
        },
        handle("overwrite, synchronise, append", allowed: [patched, patched + patch]) { handle in
            try handle.write(patch, at: 2000)
            try handle.synchronize()
            try patch.withUnsafeBytes { _ = try handle.append($0) }
        },
        Operation(name: "set-class", allowed: [old]) { files, path in
            _ = try files.setProtectionClass(of: path, to: .completeUnlessOpen)
        },
        Operation(name: "rekey", allowed: [old]) { files, path in
            _ = try files.setProtectionClass(of: path, to: .complete, rekey: true)
        },
        Operation(name: "repair", allowed: [old]) { files, path in
            // What is to be repaired is made with calls that do not fail.
            let file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
            try LinuxSystemCalls.shared.removeAttribute(KeyRecord.attributeName, of: file.number)
            _ = try files.repair(path)
        },
        Operation(name: "unprotect", allowed: [old]) { files, path in try convert(files, path, .unprotect) },
        Operation(name: "read", allowed: [old]) { files, path in
            guard try files.contents(of: path) == old, try files.open(path, for: .reading).allContent() == old else {
                throw Broken(description: "other content")
            }
        },
    ]

    static func convert(_ files: ProtectedFileSystem, _ path: FilePath, _ conversion: Conversion) throws {
        let failures = Mutex<[ProtectionError]>([])
        try TreeConversion(files, conversion) { outcome in
            if case .failed(let error) = outcome.result { failures.withLock { $0.append(error) } }
        }.run(path)
        if let error = failures.withLock({ $0.first }) { throw error }
    }

    /// The content, whether the file is protected or plain by now.
    static func found(_ files: ProtectedFileSystem, _ path: FilePath) throws -> [UInt8] {
        switch try FileInspection.inspect(path).state {
        case .plain:
            try SafeFile.read(path, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, files.system)
        default: try files.contents(of: path)
        }
    }

    private func checkError(_ error: any Error, _ failure: CausedFailure) throws {
        guard let error = error as? ProtectionError else { throw Broken(description: "untyped: \(error)") }
        switch error.code {
        case .system, .unsupported, .busy, .alreadyExists: return
        default: throw Broken(description: "\(failure) was reported as \(error.code): \(error)")
        }
    }

    /// Removes what the run before left.
    static func empty(_ directory: TemporaryDirectory) throws {
        for name in try directory.names(in: "files") {
            try LinuxSystemCalls.shared.unlink(FilePath("files/\(name)") ?? .current, in: directory.descriptor)
        }
    }

    private func expectNoTemporaryName(_ directory: TemporaryDirectory, _ failure: CausedFailure) throws {
        // Removing it, or giving the old file its name back, is what failed.
        guard !failure.calls.contains(where: { ["unlinkat", "renameat2"].contains($0) }) else { return }
        let names = try directory.names(in: "files").filter { $0.hasPrefix(".") }
        guard names.isEmpty else { throw Broken(description: "\(failure) left \(names)") }
    }

    @Test(arguments: operations, [false, true])
    func everyCallMayFail(operation: Operation, afterwards: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let runs = try failingEveryCall(
            errorNumbers: afterwards ? [ErrorNumber.inputOutput] : [5, 28], afterwards: afterwards
        ) {
            try Self.empty(fixture.directory)
            try fixture.files.write(Self.old, to: path, class: .complete)
        } _: { _, system in
            try operation.run(ProtectedFileSystem(keys: fixture.keybag, system: system), path)
        } check: { _, failure, error in
            if let error { try checkError(error, failure) }
            let content = try Self.found(fixture.files, path)
            guard operation.allowed.contains(content) else {
                throw Broken(description: "\(failure): \(content.count) bytes, neither before nor after")
            }
            guard error != nil || content == operation.allowed.last else {
                throw Broken(description: "\(failure): promised, but not done")
            }
            try expectNoTemporaryName(fixture.directory, failure)
            // Once more, with nothing failing. What was half made is finished or made from the start.
            if try FileInspection.inspect(path).state == .protected {
                try operation.run(fixture.files, path)
            }
        }
        #expect(runs > 20)
    }

    /// The caller's own handle goes on after a failure.
    @Test(arguments: [ErrorNumber.inputOutput, ErrorNumber.noSpace], [false, true])
    func aHandleGoesOnAfterAFailedWrite(errorNumber: Int32, afterwards: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let runs = try failingEveryCall(
            errorNumbers: [errorNumber], afterwards: afterwards,
            matching: { [.writeAt, .readAt, .truncate, .setAttribute].contains($0.operation) }
        ) {
            try Self.empty(fixture.directory)
            try fixture.files.write(Self.old, to: path, class: .complete)
        } _: { _, system in
            let handle = try ProtectedFileSystem(keys: fixture.keybag, system: system).open(path, for: .updating)
            var failure: (any Error)?
            func again(_ body: () throws -> Void) throws {
                do { try body() } catch {
                    failure = error
                    // With every call failing it fails again; with one, it must work.
                    do { try body() } catch { throw failure ?? error }
                }
            }
            try again { try handle.write(Self.patch, at: 2000) }
            try again { try handle.write(Self.patch, at: 9000) }
            try again { try handle.truncate(to: 10_000) }
            try again { try handle.synchronize() }
            if code({ try handle.close() }) != nil { throw Broken(description: "not closed") }
        } check: { _, failure, error in
            let states = [
                Self.old, Self.patched, Self.patched + Self.patch, Array((Self.patched + Self.patch)[..<10_000]),
            ]
            let content = try fixture.files.contents(of: path)
            guard states.contains(content) else {
                throw Broken(description: "\(failure): \(content.count) bytes of no step")
            }
            if error == nil, content != states.last {
                throw Broken(description: "\(failure): \(content.count) bytes, though every step was made")
            }
            let handle = try fixture.files.open(path, for: .updating)
            try handle.write([1], at: 0)
            try handle.close()
            try CrashScript.checkTidy(path, length: content.count)
        }
        #expect(runs > 10)
    }

    /// After a failed sync the kernel forgets what it could not write, and calls the next sync a success. A handle that
    /// believed that would seal a log that is not on the disk.
    @Test func aFailedSyncIsNotTriedAgain() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(Self.old, to: path, class: .complete)
        let calls = FailingCalls(plan: .only(1), matching: { $0.operation == .synchronizeData })
        let handle = try ProtectedFileSystem(keys: fixture.keybag, system: calls.system).open(path, for: .updating)
        try handle.write(Self.patch, at: 2000)
        try Self.patch.withUnsafeBytes { _ = try handle.append($0) }
        let inputOutput = ProtectionError.Code.system(ErrorNumber.inputOutput)
        #expect(code { try handle.synchronize() } == inputOutput)
        #expect(try handle.allContent() == Self.patched + Self.patch)
        #expect(code { try handle.write([1], at: 0) } == inputOutput)
        #expect(code { try handle.synchronize() } == inputOutput)
        // The next one to open it does not believe that anything of it is on the disk: it writes it once more.
        let recording = try RecordingCalls(of: fixture.directory.appending("files"))
        let log = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false).size
        let next = try ProtectedFileSystem(keys: fixture.keybag, system: recording.system).open(path, for: .updating)
        var written = Set<Int64>()
        synchronising: for operation in recording.operations {
            switch operation {
            case .write(_, let offset, let bytes):
                for block in stride(from: offset / 4096, through: (offset + Int64(bytes.count) - 1) / 4096, by: 1) {
                    written.insert(block)
                }
            case .synchronize: break synchronising
            default: break
            }
        }
        // The whole log and the chunk that the append put behind the end.
        let logStart = 4096 + 3 * 4096 + Int64(ContainerFile.growthRoom)
        for block in stride(from: logStart / 4096, through: (log - 1) / 4096, by: 1) {
            #expect(written.contains(block))
        }
        #expect(written.contains(4))
        #expect(try next.allContent() == Self.patched + Self.patch)
        #expect(code { try handle.close() } == inputOutput)
        try next.close()
        #expect(try fixture.files.contents(of: path) == Self.patched + Self.patch)
    }

    /// Reads and writes may always be shorter than asked.
    @Test(arguments: [1000, 0])
    func shortReadsAndWritesChangeNothing(most: Int) throws {
        let fixture = try FilesFixture()
        let system = most > 0 ? ShortCalls.limited(to: most) : ShortCalls.random(seed: 5)
        let files = ProtectedFileSystem(keys: fixture.keybag, system: system)
        for operation in Self.operations {
            let path = fixture.path("file")
            try? LinuxSystemCalls.shared.unlink(path, in: currentDirectory)
            try files.write(Self.old, to: path, class: .complete)
            #expect(try files.contents(of: path) == Self.old, "\(operation.name)")
            try operation.run(files, path)
            #expect(try Self.found(files, path) == operation.allowed.last, "\(operation.name)")
        }
        let plain = fixture.path("plain")
        try fixture.directory.write(Self.new, to: "files/plain")
        try Self.convert(files, plain, .protect(.complete))
        #expect(try fixture.files.contents(of: plain) == Self.new)
    }

    @Test(arguments: [false, true])
    func protectingMayFailAtEveryCall(afterwards: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let runs = try failingEveryCall(errorNumbers: afterwards ? [5] : [5, 28], afterwards: afterwards) {
            try Self.empty(fixture.directory)
            try fixture.directory.write(Self.new, to: "files/file")
        } _: { _, system in
            try Self.convert(ProtectedFileSystem(keys: fixture.keybag, system: system), path, .protect(.complete))
        } check: { _, failure, error in
            if let error { try checkError(error, failure) }
            guard try Self.found(fixture.files, path) == Self.new else { throw Broken(description: "\(failure): lost") }
            let state = try FileInspection.inspect(path).state
            guard error != nil || state == .protected else { throw Broken(description: "\(failure): not protected") }
            try expectNoTemporaryName(fixture.directory, failure)
            try Self.convert(fixture.files, path, .protect(.complete))
            guard try fixture.files.contents(of: path) == Self.new else {
                throw Broken(description: "\(failure): lost")
            }
        }
        #expect(runs > 20)
    }

    /// A new handle's file is there, whole and empty, or not there.
    @Test func creatingMayFailAtEveryCall() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let runs = try failingEveryCall {
            try Self.empty(fixture.directory)
        } _: { _, system in
            let files = ProtectedFileSystem(keys: fixture.keybag, system: system)
            try files.open(path, for: .creating(.complete)).close()
        } check: { _, failure, error in
            if let error { try checkError(error, failure) }
            if code({ try fixture.files.contents(of: path) }) == .system(ErrorNumber.noEntry) {
                guard error != nil else { throw Broken(description: "\(failure): promised, but not there") }
                try fixture.files.open(path, for: .creating(.complete)).close()
            }
            guard try fixture.files.contents(of: path).isEmpty else { throw Broken(description: "\(failure)") }
            try expectNoTemporaryName(fixture.directory, failure)
        }
        #expect(runs > 20)
    }
}
