import Glibc
import LinuxSystem
import TestSupport
import Testing

/// The simulator itself: it must see through protocols that are known to be broken, and let sound ones pass.
@Suite struct PowerCutTests {
    static let old = [UInt8](repeating: 1, count: 3000)
    static let new = [UInt8](repeating: 2, count: 4000)

    struct NeitherOldNorNew: Error {}
    struct PromiseBroken: Error {}

    /// Runs a protocol that turns `old` into `new` in the file "target", and checks the crash rule on every image.
    private func report(
        _ name: String, _ limits: PowerCut.Limits = .init(),
        _ change: (Int32, any SystemCalls) throws -> Void
    ) throws -> PowerCutReport {
        let directory = try TemporaryDirectory(.memory)
        try directory.write(Self.old, to: "target")
        let recording = try RecordingCalls(of: directory.path)
        try change(directory.descriptor, recording.system)
        recording.mark("done")
        #expect(try directory.read("target") == Self.new)
        return try PowerCut(recording, limits).check(name) { image in
            let bytes = try image.directory.read("target")
            guard bytes == Self.new || bytes == Self.old else { throw NeitherOldNorNew() }
            guard bytes == Self.new || !image.has("done") else { throw PromiseBroken() }
        }
    }

    private func write(_ name: FilePath, _ directory: Int32, sync: Bool, _ system: any SystemCalls) throws {
        let file = try system.openFile(name, in: directory, [.write, .create, .truncate])
        try Self.new.withUnsafeBytes { try system.writeFully(file.number, $0, at: 0) }
        if sync { try system.synchronize(file.number, dataOnly: true) }
    }

    @Test func acceptsWriteSyncRenameSyncDirectory() throws {
        let report = try report("temporary file, synchronised twice") { directory, system in
            try write("new", directory, sync: true, system)
            try system.rename("new", in: directory, to: "target", in: directory, replacing: .allowed)
            try system.synchronize(directory, dataOnly: false)
        }
        #expect(report.violationCount == 0, "\(report)")
        #expect(report.imageCount > 10)
    }

    @Test func acceptsFileSystemSynchronisation() throws {
        let report = try report("syncfs twice") { directory, system in
            try write("new", directory, sync: false, system)
            try system.synchronizeFileSystem(directory)
            try system.rename("new", in: directory, to: "target", in: directory, replacing: .allowed)
            try system.synchronizeFileSystem(directory)
        }
        #expect(report.violationCount == 0, "\(report)")
    }

    @Test func findsRenameWithoutSync() throws {
        let report = try report("renamed before its content was safe") { directory, system in
            try write("new", directory, sync: false, system)
            try system.rename("new", in: directory, to: "target", in: directory, replacing: .allowed)
            try system.synchronize(directory, dataOnly: false)
        }
        #expect(report.violationCount > 0)
        #expect(report.violations.contains { $0.error.contains("NeitherOldNorNew") }, "\(report)")
    }

    @Test func findsMissingDirectorySync() throws {
        let report = try report("directory never synchronised") { directory, system in
            try write("new", directory, sync: true, system)
            try system.rename("new", in: directory, to: "target", in: directory, replacing: .allowed)
        }
        #expect(report.violations.allSatisfy { $0.error.contains("PromiseBroken") }, "\(report)")
        #expect(report.violationCount > 0)
    }

    @Test func findsTruncateInPlace() throws {
        let report = try report("truncated in place") { directory, system in
            try write("target", directory, sync: true, system)
        }
        #expect(report.violationCount > 0)
    }

    @Test func findsTornOverwriteInPlaceAndOnlyAcrossSectors() throws {
        for (offset, count, isTorn) in [
            (0, 512, false), (512, 512, false), (100, 412, false), (100, 413, true), (0, 1024, true), (511, 2, true),
        ] {
            let directory = try TemporaryDirectory(.memory)
            try directory.write(Self.old, to: "target")
            let recording = try RecordingCalls(of: directory.path)
            let file = try recording.system.openFile("target", in: directory.descriptor, [.write])
            let bytes = [UInt8](repeating: 2, count: count)
            try bytes.withUnsafeBytes { try recording.system.writeFully(file.number, $0, at: Int64(offset)) }
            try recording.system.synchronize(file.number, dataOnly: true)
            let report = try PowerCut(recording).check("overwrite of \(count) at \(offset)") { image in
                let part = try image.directory.read("target")[offset..<(offset + count)]
                guard part.allSatisfy({ $0 == 1 }) || part.allSatisfy({ $0 == 2 }) else { throw NeitherOldNorNew() }
            }
            #expect((report.violationCount > 0) == isTorn, "\(report)")
        }
    }

    @Test func attributesNeedMoreThanDataSync() throws {
        for (dataOnly, isSafe) in [(true, false), (false, true)] {
            let directory = try TemporaryDirectory(.memory)
            try directory.write([1], to: "target")
            let recording = try RecordingCalls(of: directory.path)
            let file = try recording.system.openFile("target", in: directory.descriptor, [.write])
            try recording.system.setAttribute("user.test", of: file.number, to: [7], replacing: .allowed)
            try recording.system.synchronize(file.number, dataOnly: dataOnly)
            recording.mark("safe")
            let report = try PowerCut(recording).check("attribute") { image in
                let value = try LinuxSystemCalls.shared.attribute(
                    "user.test", of: "target", in: image.directory.descriptor)
                guard value == [7] || !image.has("safe") else { throw PromiseBroken() }
            }
            #expect((report.violationCount == 0) == isSafe, "\(report)")
        }
    }

    /// Two names made in order, nothing synchronised: on a journalling file system the second never comes without the
    /// first; in the other model it may.
    @Test func modelsDifferInTheOrderOfNames() throws {
        for (model, mayReorder) in [(CrashModel.orderedNames, false), (.anySubset, true)] {
            let directory = try TemporaryDirectory(.memory)
            let recording = try RecordingCalls(of: directory.path)
            for name: FilePath in ["first", "second"] {
                try recording.system.makeDirectory(name, in: directory.descriptor, permissions: 0o700)
            }
            var sets: Set<[String]> = []
            _ = try PowerCut(recording, .init(models: [model])).check("order of names") { image in
                sets.insert(try image.directory.names())
            }
            #expect(sets.contains(["second"]) == mayReorder)
            #expect(sets.isSuperset(of: [[], ["first"], ["first", "second"]]))
        }
    }

    @Test func followsUnnamedFilesSecondNamesAndReusedInodes() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write([1, 2, 3], to: "a")
        let recording = try RecordingCalls(of: directory.path)
        let system = recording.system
        let top = directory.descriptor
        do {
            let unnamed = try system.openFile(".", in: top, [.read, .write, .unnamed])
            try [UInt8]([9, 9]).withUnsafeBytes { try system.writeFully(unnamed.number, $0, at: 0) }
            try system.link(unnamed.number, to: "b", in: top)
            try system.link(unnamed.number, to: "c", in: top)
        }
        try system.unlink("a", in: top)
        for round in 0..<20 {
            // The kernel gives the same inode number again and again.
            let file = try system.openFile("round", in: top, [.write, .create, .exclusive])
            try [UInt8(round)].withUnsafeBytes { try system.writeFully(file.number, $0, at: 0) }
            if round < 19 { try system.unlink("round", in: top) }
        }
        try system.rename("b", in: top, to: "round", in: top, replacing: .required)
        try system.makeDirectory("inner", in: top, permissions: 0o700)
        try system.rename("c", in: top, to: "inner/d", in: top, replacing: .forbidden)
        try system.synchronizeFileSystem(top)
        recording.mark("end")
        #expect(recording.problems.isEmpty)
        var ends = 0
        let report = try PowerCut(recording, .init(imagesPerPrefix: 2)).check("identities") { image in
            guard image.has("end") else { return }
            ends += 1
            #expect(try image.directory.names() == ["b", "inner", "round"])
            #expect(try image.directory.read("b") == [19])
            #expect(try image.directory.read("round") == [9, 9])
            #expect(try image.directory.read("inner/d") == [9, 9])
            let first = try LinuxSystemCalls.shared.status(
                of: "round", in: image.directory.descriptor, followLinks: false)
            #expect(first.linkCount == 2)
        }
        #expect(ends == 1)
        #expect(report.violationCount == 0, "\(report)")
    }

    @Test func recordsAppendsAtTheirRealPlace() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write([1, 2, 3], to: "log")
        let recording = try RecordingCalls(of: directory.path)
        let file = try recording.system.openFile("log", in: directory.descriptor, [.write, .append])
        try [UInt8]([4]).withUnsafeBytes { _ = try recording.system.write(file.number, $0) }
        try [UInt8]([5]).withUnsafeBytes { _ = try recording.system.write(file.number, $0, at: 0) }
        let places = recording.operations.map {
            if case .write(_, let offset, _) = $0 { offset } else { Int64(-1) }
        }
        #expect(places == [3, 4])
    }

    @Test func boundedSearchStaysBoundedAndRepeatsItself() throws {
        let directory = try TemporaryDirectory(.memory)
        let recording = try RecordingCalls(of: directory.path)
        for number in 0..<30 {
            let file = try recording.system.openFile(
                FilePath("\(number)") ?? ".", in: directory.descriptor, [.write, .create])
            try Self.new.withUnsafeBytes { try recording.system.writeFully(file.number, $0, at: 0) }
        }
        func run() throws -> [[String]] {
            var seen: [[String]] = []
            let report = try PowerCut(recording, .init(imagesPerPrefix: 10)).check("bounded") { image in
                seen.append(try image.directory.names())
            }
            #expect(report.imageCount <= 10 * 2 * (report.operations.count + 1))
            return seen
        }
        let first = try run()
        #expect(first == (try run()))
    }
}
