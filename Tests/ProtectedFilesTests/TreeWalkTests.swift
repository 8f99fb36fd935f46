import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Which files a conversion of a tree visits, how it is interrupted and taken up again, and what it leaves alone.
@Suite struct TreeWalkTests {
    /// a/, a/b/, a/b/c/ with ten files each.
    private func makeTree(_ place: TemporaryDirectory.Place = .memory) throws -> FilesFixture {
        let fixture = try FilesFixture(place)
        try fixture.shell(
            "mkdir -p a/b/c; for d in a a/b a/b/c; do for i in 0 1 2 3 4 5 6 7 8 9; do echo $d $i > $d/f$i; done; done")
        return fixture
    }

    private func everyFile(_ fixture: FilesFixture) throws -> [FilePath] {
        try ["a", "a/b", "a/b/c"].flatMap { directory in
            try fixture.names(in: FilePath("files/\(directory)")!).filter { $0.hasPrefix("f") }
                .map { fixture.path(FilePath("\(directory)/\($0)")!) }
        }
    }

    /// Every file is plain or protected with its content; nothing else lies about.
    private func checkWhole(_ fixture: FilesFixture, _ comment: String) throws {
        let files = try everyFile(fixture)
        #expect(files.count == 30, "\(comment)")
        for path in files {
            let text = try #require(path.text)
            let expected = Array("\(text.split(separator: "/files/").last!.dropLast(3)) \(text.last!)\n".utf8)
            let content =
                try fixture.files.protectionClass(of: path) == nil
                ? try SafeFile.read(path, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
                : try fixture.files.contents(of: path)
            #expect(content == expected, "\(comment): \(path)")
        }
        #expect(try fixture.output("find . -name '.candado*'") == "", "\(comment)")
    }

    @Test func aTreeIsProtectedOnceAndThenUnchanged() throws {
        let fixture = try makeTree()
        #expect(try fixture.convert(fixture.path("a"), .protect(.complete)).count("changed") == 30)
        let again = try fixture.convert(fixture.path("a"), .protect(.complete))
        #expect(again.words == [String](repeating: "", count: 30).indices.map { "f\($0 / 3): unchanged complete" })
        // Directories have the class for new files.
        for directory in ["a", "a/b", "a/b/c"] {
            #expect(try fixture.files.protectionClass(of: fixture.path(FilePath(directory)!)) == .complete)
        }
        // Another class is another command; no class asked for is as it is.
        let other = try fixture.convert(fixture.path("a"), .protect(.completeUnlessOpen))
        #expect(other.codes == [ProtectionError.Code](repeating: .otherClass(.complete), count: 30))
        #expect(try fixture.convert(fixture.path("a"), .protect(nil)).count("unchanged complete") == 30)
        try checkWhole(fixture, "protected")
        #expect(try fixture.convert(fixture.path("a"), .unprotect).count("changed") == 30)
        #expect(try fixture.convert(fixture.path("a"), .unprotect).count("unchanged plain") == 30)
        #expect(try fixture.output("getfattr -R -d -m user.candado .") == "")
        try checkWhole(fixture, "plain again")
    }

    @Test func withoutAClassTheDirectorysCountsElseTheDefault() throws {
        let fixture = try makeTree()
        _ = try fixture.files.setProtectionClass(of: fixture.path("a/b"), to: .complete)
        #expect(try fixture.convert(fixture.path("a"), .protect(nil)).count("changed") == 30)
        #expect(try fixture.files.protectionClass(of: fixture.path("a/f0")) == .completeUntilFirstUserAuthentication)
        #expect(try fixture.files.protectionClass(of: fixture.path("a/b/f0")) == .complete)
        #expect(try fixture.files.protectionClass(of: fixture.path("a")) == nil)
    }

    /// Interrupted at every question that it asks, every file is whole; the next run does the rest.
    @Test func interruptedAnywhereEveryFileIsWholeAndTheNextRunDoesTheRest() throws {
        for conversion in [Conversion.protect(.complete), .unprotect] {
            var number = 0
            while true {
                number += 3
                let fixture = try makeTree()
                if conversion == .unprotect { try fixture.convert(fixture.path("a"), .protect(.complete)) }
                let asked = Atomic<Int>(0)
                let limit = number
                let outcomes = TreeOutcomes()
                let thrown = code {
                    try fixture.convert(
                        fixture.path("a"), conversion,
                        isCancelled: { asked.add(1, ordering: .relaxed).newValue >= limit }, outcomes: outcomes)
                }
                if thrown == nil { break }
                #expect(thrown == .cancelled)
                try checkWhole(fixture, "\(conversion) interrupted at \(number)")
                let changed = outcomes.count("changed")
                let rest = try fixture.convert(fixture.path("a"), conversion)
                #expect(rest.count("changed") == 30 - changed)
                #expect(rest.count("unchanged") == changed)
                try checkWhole(fixture, "\(conversion) taken up again")
            }
            #expect(number > 30)
        }
    }

    @Test func whileLockedNothingIsUnprotectedAndNothingWritten() throws {
        let fixture = try makeTree()
        try fixture.convert(fixture.path("a"), .protect(.complete))
        try fixture.lock()
        let before = try fixture.output(
            "getfattr -R -d -m - -e hex .; find . -printf '%p %i %C@ %s\\n'; cat a/f* | sha256sum")
        #expect(
            try fixture.convert(fixture.path("a"), .unprotect).codes
                == [ProtectionError.Code](repeating: .locked(.complete), count: 30))
        #expect(
            try fixture.output("getfattr -R -d -m - -e hex .; find . -printf '%p %i %C@ %s\\n'; cat a/f* | sha256sum")
                == before)
        // Plain files cannot be given a class that cannot be wrapped.
        try fixture.shell("rm a/f3; echo plain > a/f3")
        #expect(try fixture.convert(fixture.path("a/f3"), .protect(.complete)).codes == [.locked(.complete)])
        #expect(try fixture.output("cat a/f3") == "plain\n")
    }

    /// A file that stays protected keeps the class of its directory, and of those above; the others lose it.
    @Test func aDirectoryKeepsItsClassWhileAFileBelowStaysProtected() throws {
        let fixture = try makeTree()
        try fixture.convert(fixture.path("a"), .protect(.complete))
        try fixture.shell("mkdir a/side; echo x > a/side/file; ln a/b/f5 a/b/f5-linked; mv a/b/f5-linked a/b/c/f9")
        _ = try fixture.files.setProtectionClass(of: fixture.path("a/side"), to: .complete)
        let outcomes = try fixture.convert(fixture.path("a"), .unprotect)
        #expect(outcomes.codes == [.unsupported, .unsupported])
        #expect(
            try fixture.output("getfattr -R -d -m user.candado . | grep '^# file: ' | sort")
                == "# file: a\n# file: a/b\n# file: a/b/c\n# file: a/b/c/f9\n# file: a/b/f5\n")
    }

    @Test func leftoversOfAKilledRunAreRemovedUnlessSomebodyStillHasThem() throws {
        let fixture = try makeTree()
        try fixture.shell("echo left > a/.candado-tmp-0123456789abcdef; echo used > a/b/.candado-tmp-00000000ffffffff")
        try fixture.shell(
            "echo mine > a/.candado-tmp-not-hexadecimal; echo mine > a/.candado-tmp-0123; ln a/f0 a/.candado-tmp-1111111111111111"
        )
        let used = try LinuxSystemCalls.shared.openFile(
            fixture.path("a/b/.candado-tmp-00000000ffffffff"), [.read, .write])
        try PendingConversion.guardTemporaryName(of: used.number, LinuxSystemCalls.shared)
        let outcomes = try fixture.convert(fixture.path("a"), .protect(.complete))
        let names = try fixture.output("find . -name '.candado*' | sort")
        #expect(
            names
                == "./a/.candado-tmp-0123\n./a/.candado-tmp-1111111111111111\n./a/.candado-tmp-not-hexadecimal\n./a/b/.candado-tmp-00000000ffffffff\n"
        )
        #expect(outcomes.codes.contains(.busy) && outcomes.codes.count == 3, "\(outcomes.words)")
    }

    /// What goes away during the walk is no failure; what cannot be listed is one, and the rest is done.
    @Test func filesThatGoAwayAreSkippedAndDirectoriesThatCannotBeReadAreSaid() throws {
        let fixture = try makeTree()
        let victim = fixture.path("a/f5")
        let removed = Atomic<Bool>(false)
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.path == "f5", call.operation == .open || call.operation == .statusOfPath,
                removed.exchange(true, ordering: .relaxed) == false
            {
                try? LinuxSystemCalls.shared.unlink(victim, in: currentDirectory)
            }
            if call.operation == .open, call.path == "c" { throw call.failure(EACCES) }
            return .proceed
        }
        let outcomes = try fixture.convert(fixture.path("a"), .protect(.complete), system: system)
        #expect(outcomes.codes == [.system(EACCES)])
        #expect(outcomes.count("changed") + outcomes.count("skipped, gone") == 20, "\(outcomes.words)")
        #expect(code { try fixture.convert(fixture.path("nowhere"), .protect(.complete)) } == .system(ENOENT))
    }

    /// A sync that fails leaves every file of it as it was, and says so for each.
    @Test func aSyncThatFailsLeavesTheFilesAsTheyWere() throws {
        let fixture = try makeTree()
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.operation == .synchronizeFileSystem { throw call.failure(EIO) }
            return .proceed
        }
        let outcomes = TreeOutcomes()
        #expect(
            code { try fixture.convert(fixture.path("a"), .protect(.complete), system: system, outcomes: outcomes) }
                == .system(EIO))
        #expect(outcomes.codes == [ProtectionError.Code](repeating: .system(EIO), count: 30))
        try checkWhole(fixture, "after the failure")
        #expect(try everyFile(fixture).allSatisfy { try fixture.files.protectionClass(of: $0) == nil })
    }

    @Test func theCapsuleAtTheRootStaysPlain() throws {
        let fixture = try makeTree()
        try fixture.shell("echo capsule > a/.candado-recovery; echo capsule > a/b/.candado-recovery")
        let outcomes = try fixture.convert(fixture.path("a"), .protect(.complete))
        #expect(outcomes.count("changed") == 30)
        #expect(outcomes.count("skipped, a recovery capsule") == 1)
        #expect(try fixture.output("cat a/.candado-recovery a/b/.candado-recovery") == "capsule\ncapsule\n")
    }
}
