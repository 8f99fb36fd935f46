import FileProtection
import ProtectedFoundation
import TestSupport
import Testing

/// Foundation's `Progress` shows how far protected work is, and cancels it.
@Suite struct ProgressTests {
    private let directory: TemporaryDirectory
    private let protection: FileProtection
    private var path: FilePath { directory.appending("file") }

    init() throws {
        directory = try TemporaryDirectory(.memory)
        let home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(in: home, passcode: nil, recoveryKey: nil)
        protection = try FileProtection.open(home)
    }

    @Test func itShowsHowFarAWriteAReadAndAConversionAre() async throws {
        let content = [UInt8](repeating: 7, count: 1_000_000)
        let writing = Progress(totalUnitCount: 0)
        try await protection.write(content, to: path, class: ProtectionClass.none, progress: writing)
        #expect(writing.totalUnitCount == 1_000_000 && writing.isFinished)
        let reading = Progress(totalUnitCount: 0)
        #expect(try await protection.contents(of: path, progress: reading) == content)
        #expect(reading.totalUnitCount == 1_000_000 && reading.isFinished)
        let converting = Progress(totalUnitCount: 0)
        try await protection.convert(path, .unprotect, progress: converting) { _ in }
        #expect(converting.isFinished && converting.totalUnitCount >= 1_000_000)
        #expect(try directory.read("file") == content)
    }

    @Test func cancellingItCancelsTheWork() async throws {
        try await protection.write([1], to: path)
        let before = try directory.read("file")
        let progress = Progress(totalUnitCount: 0)
        progress.cancel()
        for _ in 0..<2 {
            do throws(ProtectionError) {
                try await protection.write([2], to: path, progress: progress)
                Issue.record("it was written")
            } catch { #expect(error.code == .cancelled) }
        }
        #expect(try directory.read("file") == before)
        // In the middle of a tree: a link is reported as skipped before the files are given their new names.
        try directory.makeDirectory("tree")
        symlink("nowhere", directory.appending("tree/link").description)
        for number in 0..<100 { try directory.write([1], to: FilePath("tree/\(number)") ?? "x") }
        let second = Progress(totalUnitCount: 0)
        var options = TreeConversion.Options()
        options.recursive = true
        do throws(ProtectionError) {
            try await protection.convert(
                directory.appending("tree"), .protect(nil), options: options, progress: second
            ) { _ in second.cancel() }
            Issue.record("all of it was converted")
        } catch { #expect(error.code == .cancelled) }
        for number in 0..<100 { #expect(try directory.read(FilePath("tree/\(number)") ?? "x") == [1]) }
    }
}
