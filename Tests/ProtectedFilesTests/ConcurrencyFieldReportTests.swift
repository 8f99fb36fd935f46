import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Situations that users of similar systems met, by the numbers of the field reports. DL-05 is among the full disks.
@Suite struct ConcurrencyFieldReportTests {
    private let fixture: FilesFixture
    private var files: ProtectedFileSystem { fixture.files }
    private var system: any SystemCalls { LinuxSystemCalls.shared }

    init() throws { fixture = try FilesFixture() }

    /// FS-01: shrink by path, write again through the old handle, shrink again.
    @Test func fs01ShrunkByPathWhileOpen() throws {
        let path = fixture.path("file")
        let handle = try files.open(path, for: .creating(.complete))
        try handle.write(pattern(4096), at: 0)
        try files.open(path, for: .updating).truncate(to: 8)
        try handle.write([UInt8](repeating: 7, count: 10), at: 4096)
        try handle.truncate(to: 100)
        #expect(try handle.allContent() == pattern(4096)[..<8] + [UInt8](repeating: 0, count: 92))
        try handle.close()
        #expect(try files.contents(of: path) == pattern(4096)[..<8] + [UInt8](repeating: 0, count: 92))
    }

    /// FS-03: renamed while open, into directories of the same and another class, and over an existing file.
    @Test func fs03RenamedWhileOpen() throws {
        try fixture.directory.makeDirectory("files/same")
        try fixture.directory.makeDirectory("files/other")
        _ = try files.setProtectionClass(of: fixture.path("other"), to: .none)
        let path = fixture.path("file")
        try files.write(pattern(9000), to: path, class: .complete)
        try files.write(pattern(10), to: fixture.path("other/there"), class: ProtectionClass.none)
        let (reader, writer) = (try files.open(path, for: .reading), try files.open(path, for: .updating))
        var content = pattern(9000)
        var present = path
        for (number, name) in (["same/file", "other/file", "other/there"] as [FilePath]).enumerated() {
            try system.rename(
                present, in: currentDirectory, to: fixture.path(name), in: currentDirectory, replacing: .allowed)
            present = fixture.path(name)
            try writer.write([UInt8(number)], at: number * 4000)
            content[number * 4000] = UInt8(number)
            #expect(try reader.allContent() == content)
            #expect(try files.contents(of: present) == content)
            // A rename keeps the class.
            #expect(try files.protectionClass(of: present) == .complete)
        }
        try writer.close()
        #expect(try files.contents(of: present) == content)
    }

    /// FS-05: a side file is renamed over the base again and again while somebody has the base open.
    @Test func fs05ReplacedAgainAndAgainWhileOpen() throws {
        let path = fixture.path("base")
        try files.write(pattern(5000), to: path, class: .complete)
        let old = try files.open(path, for: .reading)
        let worker = try Worker(fixture, "replace", path, "\(Effort.share(300, long: 10_000))")
        try worker.awaitAnswer()
        var versions = Set<UInt8>()
        while worker.isRunning {
            #expect(try old.allContent() == pattern(5000))
            let content = try files.contents(of: path)
            try #require(content.count == 5000 && Set(content).count == 1)
            versions.insert(content[0])
        }
        #expect(try worker.finish() == 0)
        #expect(versions.count > 1)
        #expect(try fixture.directory.names(in: "files") == ["base"])
    }

    /// FS-09: containers moved and renamed in the backing directory.
    @Test func fs09MovedContainersStillOpen() throws {
        try fixture.directory.makeDirectory("files/from")
        for number in 0..<5 { try files.write(pattern(5000 + number), to: fixture.path(FilePath("from/\(number)")!)) }
        try system.rename(
            fixture.path("from"), in: currentDirectory, to: fixture.path("to"), in: currentDirectory,
            replacing: .forbidden)
        for number in 0..<5 {
            let name = fixture.path(FilePath("moved\(number)")!)
            try system.rename(
                fixture.path(FilePath("to/\(number)")!), in: currentDirectory, to: name, in: currentDirectory,
                replacing: .forbidden)
            #expect(try files.contents(of: name) == pattern(5000 + number))
        }
    }

    /// CC-01 and CC-05: two loops that resize one file, and a reader: data, a short read or the end, and no hang.
    @Test func cc01AndCc05ResizedByTwoProcesses() throws {
        let path = fixture.path("file")
        try files.write([UInt8](repeating: 0, count: 50_000), to: path, class: .complete)
        let rounds = Effort.share(400, long: 20_000)
        let workers = try (1...2).map { try Worker(fixture, "resize", path, "\($0)", "\(rounds)") }
        for worker in workers { try worker.awaitAnswer() }
        let reader = try files.open(path, for: .reading)
        var random = DeterministicRandom(seed: 9)
        var reads = 0
        while workers.contains(where: \.isRunning) {
            let bytes = try reader.read(4096, at: Int.random(in: 0..<100_000, using: &random))
            try #require(bytes.allSatisfy { $0 == 0 })
            if reads % 10 == 0 { _ = try files.open(path, for: .reading).length }
            reads += 1
        }
        for worker in workers { #expect(try worker.finish() == 0) }
        let length = Int(try reader.length)
        #expect(try files.contents(of: path) == [UInt8](repeating: 0, count: length))
    }

    /// CC-03: many copies at once while unrelated files come and go.
    @Test func cc03ManyCopiesAtOnce() throws {
        let count = 100
        for number in 0..<10 {
            try files.write(pattern(20_000, seed: UInt64(number)), to: fixture.path(FilePath("s\(number)")!))
        }
        let failures = Mutex<[String]>([])
        let next = Mutex(0)
        let (files, fixture) = (self.files, self.fixture)
        WorkerThreads.run(8) { worker in
            while true {
                let number = next.withLock { next in
                    defer { next += 1 }
                    return next
                }
                guard number < count else { return }
                do {
                    if worker % 4 == 0 {
                        let unrelated = fixture.path(FilePath("unrelated\(worker)")!)
                        try files.write(pattern(3000), to: unrelated)
                        try LinuxSystemCalls.shared.unlink(unrelated, in: currentDirectory)
                    }
                    let content = try files.contents(of: fixture.path(FilePath("s\(number % 10)")!))
                    let copy = fixture.path(FilePath("copy\(number)")!)
                    try files.write(content, to: copy)
                    guard try files.contents(of: copy) == pattern(20_000, seed: UInt64(number % 10)) else {
                        throw CrashScript.Broken(description: "another content")
                    }
                } catch {
                    failures.withLock { $0.append("\(number): \(error)") }
                }
            }
        }
        #expect(failures.withLock { $0 } == [])
    }

    /// DL-01: a directory is made and given a class; after a power cut it is absent or usable, and its parent lists.
    @Test func dl01ANewDirectoryIsAbsentOrUsable() throws {
        try CrashBystander.make(in: fixture)
        let recording = try RecordingCalls(of: fixture.directory.appending("files"))
        let recorded = ProtectedFileSystem(keys: fixture.keybag, system: recording.system)
        let inner = fixture.path("inner")
        try recording.system.makeDirectory(inner, in: currentDirectory, permissions: 0o700)
        _ = try recorded.setProtectionClass(of: inner, to: .complete)
        try recorded.write(pattern(100), to: inner.appending("file"))
        let (keys, files) = (fixture.keybag, self.files)
        let report = try PowerCut(recording, .init(imagesPerPrefix: Effort.images)).check("a new directory") { image in
            try CrashBystander.check(image.directory.path, keys)
            let inner = image.directory.appending("inner")
            guard try image.directory.names().contains("inner") else { return }
            try files.write(pattern(200), to: inner.appending("other"))
            _ = try files.setProtectionClass(of: inner, to: .none)
            guard try files.contents(of: inner.appending("other")) == pattern(200) else {
                throw CrashScript.Broken(description: "other content")
            }
            _ = try image.directory.names(in: "inner")
        }
        #expect(report.violationCount == 0, "\(report)")
    }

    /// DL-03: a directory's record is emptied or overwritten: a clear error for new files there, its neighbours are fine,
    /// and it can be mended or removed.
    @Test(arguments: [[], [1], pattern(20), pattern(60), Array("2A".utf8)])
    func dl03ADamagedDirectoryRecord(bytes: [UInt8]) throws {
        for name in ["bad", "good"] as [FilePath] {
            try fixture.directory.makeDirectory(FilePath("files/\(name)")!)
            _ = try files.setProtectionClass(of: fixture.path(name), to: .complete)
            try files.write(pattern(100), to: fixture.path(name).appending("file"))
        }
        do {
            let directory = try system.openFile(fixture.path("bad"), [.read, .directory])
            try system.setAttribute(KeyRecord.attributeName, of: directory.number, to: bytes, replacing: .allowed)
        }
        let expected: ProtectionError.Code = bytes.first == UInt8(ascii: "2") ? .needsNewerVersion : .damaged(.record)
        #expect(code { try files.write(pattern(5), to: fixture.path("bad/new")) } == expected)
        #expect(code { try files.protectionClass(of: fixture.path("bad")) } == expected)
        #expect(try fixture.directory.names(in: "files/bad") == ["file"])
        // An explicit class needs no directory's; files inside have their own records.
        #expect(try files.contents(of: fixture.path("bad/file")) == pattern(100))
        try files.write(pattern(5), to: fixture.path("bad/new"), class: .complete)
        #expect(try files.contents(of: fixture.path("good/file")) == pattern(100))
        if expected == .needsNewerVersion {
            // What a newer version wrote is not thrown away.
            #expect(code { try files.removeDirectoryClass(fixture.path("bad")) } == expected)
            return
        }
        #expect(try files.removeDirectoryClass(fixture.path("bad")))
        try files.write(pattern(6), to: fixture.path("bad/new"))
        #expect(try files.contents(of: fixture.path("bad/new")) == pattern(6))
    }

    /// DL-11: a container flipped or cut anywhere never crashes the reader, is never rewritten while damaged, and what
    /// is untouched can still be read.
    @Test func dl11FlippedAndCutContainers() throws {
        let path = fixture.path("file")
        let content = pattern(9000)
        try files.write(content, to: path, class: .complete)
        let whole = try fixture.directory.read("files/file")
        for offset in stride(from: 0, to: whole.count, by: Effort.share(64, long: 1)) {
            for isCut in [false, true] {
                do {
                    let file = try system.openFile(path, [.write])
                    var bytes = isCut ? Array(whole[..<offset]) : whole
                    if !isCut { bytes[offset] ^= 0x10 }
                    try bytes.withUnsafeBytes { try system.writeFully(file.number, $0, at: 0) }
                    try system.truncate(file.number, to: Int64(bytes.count))
                }
                let before = try fixture.directory.read("files/file")
                do {
                    let found = try files.contents(of: path)
                    try #require(found == content, "other content at \(offset)")
                } catch let error as ProtectionError {
                    switch error.code {
                    case .damaged, .needsNewerVersion: break
                    default: Issue.record("\(offset) \(isCut): \(error)")
                    }
                    // The last chunk, when it is not the one.
                    if let handle = try? files.open(path, for: .reading), let tail = try? handle.read(100, at: 8192) {
                        #expect(tail == Array(content[8192..<8292]))
                    }
                    #expect(try fixture.directory.read("files/file") == before)
                }
            }
        }
    }
}
