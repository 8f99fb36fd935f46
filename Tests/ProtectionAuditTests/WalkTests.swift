import FileProtection
import ProtectionAudit
import Synchronization
import TestSupport
import Testing

@Suite struct WalkTests {
    /// A tree with directories above the size of a batch, deep ones, empty ones, and names that sort by bytes only.
    private func makeTree(_ fixture: AuditFixture) throws {
        try fixture.protected("donor", .complete)
        try fixture.shell(
            """
            mkdir -p many a/b/c/d e/empty "a b" a-b
            for i in $(seq 1 700); do : > many/$i; done
            for d in a a/b a/b/c a/b/c/d e "a b" a-b; do for f in 1 z Z é .hidden; do echo x > "$d/$f"; done; done
            for i in $(seq 1 40); do mkdir many/dir$i; echo x > many/dir$i/x; done
            ln -s ../a many/link; ln -s . a/loop; ln -s missing a/dangling; mkfifo e/pipe
            """)
    }

    /// The order of reports, by another way: depth first, each directory before what is in it, by the bytes of names.
    private func reference(_ path: FilePath, _ system: any SystemCalls) throws -> [FilePath] {
        guard try system.status(of: path, in: currentDirectory, followLinks: false).kind == .directory else {
            return [path]
        }
        let opened = try system.openFile(path, [.read, .directory])
        let names = try system.entries(opened.number).map(\.name)
        return try [path]
            + names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.flatMap {
                try reference(path.appending($0), system)
            }
    }

    @Test(arguments: [1, 2, 3, 8])
    func theOrderIsThatOfTheTreeWithAnyNumberOfThreads(threads: Int) throws {
        let fixture = try AuditFixture()
        try makeTree(fixture)
        var options = Audit.Options()
        options.threads = threads
        let expected = try reference(fixture.root, fixture.system).map { "\"\($0)\"" }
        for _ in 0..<3 {
            let run = try AuditRun([fixture.root], options)
            let told = run.lines.dropLast().map { line in
                String(line.split(separator: ",")[1].dropFirst("\"path\":".count).prefix { $0 != "}" })
            }
            #expect(told == expected)
        }
    }

    @Test func totalsAreThoseThatFindCounts() throws {
        let fixture = try AuditFixture()
        try makeTree(fixture)
        try fixture.protected("a/one", .complete)
        try fixture.protected("a/two", .completeUnlessOpen)
        try fixture.protected("a/three", .none, foreign: true)
        var options = Audit.Options()
        options.keybag = fixture.own.files.keys.keybagIdentifier
        let summary = try AuditRun([fixture.root], options).summary
        let found = try Command.run("find", [fixture.root.description, "-type", "f", "-printf", "%s %b\\n"])
        let sizes = found.outputText.split(separator: "\n").map { $0.split(separator: " ").compactMap { Int64($0) } }
        #expect(summary.files.files == UInt64(sizes.count))
        #expect(summary.files.bytes == sizes.reduce(0) { $0 + $1[0] })
        #expect(summary.files.allocated == sizes.reduce(0) { $0 + $1[1] * 512 })
        let directories = try Command.run("find", [fixture.root.description, "-type", "d"])
        #expect(summary.states[.directory]?.files == UInt64(directories.outputText.split(separator: "\n").count))
        var protected = AuditCount()
        for count in summary.classes.values {
            protected.files += count.files
            protected.bytes += count.bytes
            protected.allocated += count.allocated
        }
        #expect(summary.states[.protected] == protected)
        #expect(summary.classes[.complete]?.files == 2)
        #expect(summary.states[.foreign]?.files == 1)
        #expect(summary.keybags.values.reduce(0, +) == 4)
        #expect(summary.skipped == [.symbolicLink: 3, .special: 1])
        #expect(summary.findings["plain"] == summary.states[.plain]?.files)
    }

    @Test func thePlainWalkOpensDirectoriesOnlyAndLooksTwiceAtEachFile() throws {
        let fixture = try AuditFixture()
        try fixture.makeDirectory("inner")
        let names: [FilePath] = ["a", "b", "c", "inner/d", "inner/e"]
        for name in names { try fixture.protected(name) }
        let calls = Mutex<[SystemOperation: Int]>([:])
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                calls.withLock { $0[call.operation, default: 0] += 1 }
                if call.operation == .open { #expect(call.options?.contains(.directory) == true) }
            })
        let run = try AuditRun([fixture.root], Audit.Options(), system)
        #expect(run.summary.states[.protected]?.files == 5)
        let counts = calls.withLock { $0 }
        #expect(counts[.attributeOfPath] == names.count)
        #expect(counts[.statusOfPath] == names.count + 1)
        #expect(counts[.open] == 2)
        #expect(counts[.read] == nil)
        #expect(counts[.readAt] == nil)
        #expect(!counts.keys.contains { [.write, .writeAt, .setAttribute, .lock].contains($0) })
    }

    @Test func comparingHeadersReadsEachFileOnce() throws {
        let fixture = try AuditFixture()
        for name in ["a", "b", "c"] as [FilePath] { try fixture.protected(name) }
        let reads = Mutex(0)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in if call.operation == .readAt { reads.withLock { $0 += 1 } } })
        var options = Audit.Options()
        options.comparesHeaders = true
        let run = try AuditRun([fixture.root], options, system)
        #expect(run.summary.violations == 0)
        #expect(reads.withLock { $0 } == 3)
    }

    @Test func anEmptyDirectoryHasNothingWrong() throws {
        let fixture = try AuditFixture()
        let run = try AuditRun([fixture.root])
        #expect(run.summary.files == AuditCount())
        #expect(run.summary.states[.directory]?.files == 1)
        #expect(run.summary.violations == 0)
        #expect(run.entries.map(\.path) == [fixture.root])
    }

    @Test(arguments: ["tree", "tree/", "./tree", "tree/."])
    func pathsAreJoinedAsTheyWereGiven(operand: String) throws {
        let fixture = try AuditFixture()
        try fixture.plain("x")
        let given = fixture.directory.appending(try #require(FilePath(operand)))
        let run = try AuditRun([given])
        let slash = operand.hasSuffix("/") ? "" : "/"
        #expect(run.entries.last?.path.description == "\(given)\(slash)x")
    }

    @Test func aTreeDeeperThanAnyPathIsWalkedWithFewDescriptors() throws {
        let fixture = try AuditFixture()
        let depth = 2200
        // Each level has a file before and one behind the way down, so that the way back is walked too.
        var directory = try fixture.system.openFile(fixture.root, [.read, .directory])
        for _ in 0..<depth {
            for name in ["a", "z"] as [FilePath] {
                _ = try fixture.system.openFile(name, in: directory.number, [.write, .create])
            }
            try fixture.system.makeDirectory("m", in: directory.number, permissions: 0o700)
            directory = try fixture.system.openFile("m", in: directory.number, [.read, .directory])
        }
        defer { _ = try? Command.run("rm", ["-rf", fixture.path("m").description]) }
        let open = Mutex((now: 0, most: 0))
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                open.withLock { open in
                    if call.operation == .open { open.now += 1 }
                    if call.operation == .close { open.now -= 1 }
                    open.most = max(open.most, open.now)
                }
            })
        let run = try AuditRun([fixture.root], Audit.Options(), format: AuditTextFormat(), system)
        #expect(run.summary.states[.plain]?.files == UInt64(2 * depth))
        #expect(run.summary.states[.directory]?.files == UInt64(depth + 1))
        #expect(run.summary.failed == 0)
        let counted = open.withLock { $0 }
        #expect(counted.now == 0)
        #expect(counted.most < 200)
    }

    @Test func losingTheWayBackIsToldForEveryLevelThatWasLeftUnfinished() throws {
        let fixture = try AuditFixture()
        try fixture.shell("mkdir -p $(seq -s / 100 180); touch 100/z 100/101/z")
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if call.operation == .open, call.path == ".." { throw call.failure(2) }
                return .proceed
            })
        let run = try AuditRun([fixture.root], Audit.Options(), system)
        // 82 levels with the root, of which the last 64 are open.
        #expect(run.summary.failed == 82 - 64)
        #expect(run.failures.map(\.path).contains(fixture.root))
        #expect(run.summary.states[.plain] == nil)
    }

    @Test func linksAndSpecialFilesAreNoOperands() throws {
        let fixture = try AuditFixture()
        try fixture.shell("mkdir d; touch d/x; ln -s d link; mkfifo pipe")
        for name in ["link", "pipe", "missing"] as [FilePath] {
            let run = try AuditRun([fixture.path(name)])
            #expect(run.failures.map(\.path) == [fixture.path(name)])
            #expect(run.summary.states.isEmpty)
        }
        // A slash behind it asks for what it points to.
        #expect(try AuditRun([fixture.path("link/")]).summary.files.files == 1)
    }

    @Test func theOwnHomeAndTheCapsuleAreLeftOut() throws {
        let fixture = try AuditFixture()
        try fixture.plain(".candado-recovery")
        var options = Audit.Options()
        options.excluded = fixture.own.ownFiles()
        let run = try AuditRun([fixture.directory.path], options)
        #expect(run.summary.skipped[.ownHome] == 1)
        #expect(run.summary.skipped[.recoveryCapsule] == 1)
        let told = run.skipped(below: fixture.directory.path)
        #expect(told["home"] == .ownHome)
        #expect(told["tree/.candado-recovery"] == .recoveryCapsule)
        #expect(!run.entries.contains { $0.path.description.hasPrefix("\(fixture.directory.path)/home/") })
    }

    @Test func operandsAreWalkedInTheirOrder() throws {
        let fixture = try AuditFixture()
        for name in ["b", "a", "c"] as [FilePath] { try fixture.plain(name) }
        let run = try AuditRun(
            [fixture.path("c"), fixture.path("missing"), fixture.path("a")], format: AuditTextFormat(hasTotals: false))
        #expect(run.lines.map { $0.suffix(2) } == ["c'", "a'"])
        #expect(run.failures.map(\.code) == [.system(ErrorNumber.noEntry)])
    }

    @Test(.enabled(if: MountedImage.unavailable == nil)) func otherFileSystemsAreEnteredOnlyWhenAsked() throws {
        let image = try MountedImage(.tmpfs, size: 1 << 20)
        let holder = image.path.parent
        _ = try Command.run("sh", ["-c", "echo x > \(image.path)/inside; echo x > \(holder)/outside"])
        var options = Audit.Options()
        let staying = try AuditRun([holder], options)
        #expect(staying.skipped(below: holder) == ["mounted": .otherFileSystem])
        #expect(staying.files(below: holder)["outside"]?.state == .plain)
        options.crossesFileSystems = true
        let crossing = try AuditRun([holder], options)
        #expect(crossing.files(below: holder)["mounted/inside"]?.state == .plain)
        #expect(crossing.summary.skipped == [:])
        // As an operand it is its own file system.
        #expect(try AuditRun([image.path]).files(below: image.path)["inside"]?.state == .plain)
    }

    @Test(.enabled(if: MountedImage.unavailable == nil))
    func aFileSystemWhoseDirectoriesDoNotTellKindsIsWalkedAllTheSame() throws {
        let holder = try TemporaryDirectory()
        let made = try Command.run(
            "sh",
            [
                "-ec",
                """
                truncate -s 8M image; mkfs.ext4 -q -F -O ^filetype image; mkdir m; mount -o loop image m
                mkdir -p m/d/e; echo text > m/d/f; ln -s d m/link; mkfifo m/pipe; echo text > m/z; rmdir m/lost+found
                """,
            ], directory: holder.path)
        defer { _ = try? Command.run("umount", ["-l", holder.appending("m").description]) }
        try #require(made.status == 0, "\(made.errorText)")
        let root = holder.appending("m")
        let opened = try LinuxSystemCalls.shared.openFile(root, [.read, .directory])
        try #require(try LinuxSystemCalls.shared.entries(opened.number).allSatisfy { $0.kind == nil })
        let run = try AuditRun([root])
        #expect(
            run.files(below: root).mapValues(\.state) == [
                ".": .directory, "d": .directory, "d/e": .directory, "d/f": .plain, "z": .plain,
            ])
        #expect(run.skipped(below: root) == ["link": .symbolicLink, "pipe": .special])
        #expect(run.summary.failed == 0)
    }
}
