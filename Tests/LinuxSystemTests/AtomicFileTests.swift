import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct AtomicFileTests {
    static let old = [UInt8](repeating: 1, count: 3000)
    static let new = [UInt8](repeating: 2, count: 5000)

    /// The ways in which a file system may lack what is tried first.
    enum Abilities: String, CaseIterable, Sendable {
        case all
        case noUnnamedFiles
        case noUnnamedFilesAndNoExclusiveRename

        func limit(_ base: any SystemCalls) -> any SystemCalls {
            InterceptedSystemCalls(
                base,
                intercept: { [self] (call) throws(SystemError) in
                    if self != .all, call.options?.contains(.unnamed) == true { throw call.failure(EOPNOTSUPP) }
                    if self == .noUnnamedFilesAndNoExclusiveRename, call.operation == .rename,
                        call.replacing == .forbidden
                    {
                        throw call.failure(EINVAL)
                    }
                    return .proceed
                })
        }
    }

    private static func replace(
        _ directory: TemporaryDirectory, _ bytes: [UInt8], exclusive: Bool = false, permissions: UInt32 = 0o600,
        _ system: any SystemCalls
    ) throws {
        try bytes.withUnsafeBytes {
            try AtomicFile.replace(
                "file", in: directory.descriptor, with: $0, permissions: permissions, exclusive: exclusive, system)
        }
    }

    @Test(arguments: Abilities.allCases, SystemUnderTest.allCases)
    func makesAndReplacesFilesAndLeavesNothingElse(abilities: Abilities, system: SystemUnderTest) throws {
        let calls = abilities.limit(system.calls)
        let directory = try TemporaryDirectory()
        for content in [[], [1], Self.old, Self.new, []] as [[UInt8]] {
            try Self.replace(directory, content, calls)
            #expect(try directory.read("file") == content)
            #expect(try directory.names() == ["file"])
        }
        #expect(errorNumber { try Self.replace(directory, Self.new, exclusive: true, calls) } == EEXIST)
        #expect(try directory.read("file") == [])
        #expect(try directory.names() == ["file"])
        try calls.unlink("file", in: directory.descriptor)
        try Self.replace(directory, Self.new, exclusive: true, calls)
        #expect(try directory.read("file") == Self.new)
        #expect(try directory.names() == ["file"])
    }

    @Test(arguments: [0o600, 0o644, 0o666, 0o400, 0o755] as [UInt32], Abilities.allCases)
    func permissionsAreWhatWasAskedForDespiteTheMask(permissions: UInt32, abilities: Abilities) throws {
        let directory = try TemporaryDirectory()
        try Self.replace(directory, Self.new, permissions: permissions, abilities.limit(LinuxSystemCalls.shared))
        let status = try LinuxSystemCalls.shared.status(of: "file", in: directory.descriptor, followLinks: false)
        #expect(status.permissions == permissions)
    }

    @Test func replacesALinkInsteadOfFollowingIt() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Self.old, to: "elsewhere")
        #expect(symlink("elsewhere", directory.appending("file").description) == 0)
        try Self.replace(directory, Self.new, LinuxSystemCalls.shared)
        #expect(try directory.read("elsewhere") == Self.old)
        #expect(try directory.read("file") == Self.new)
    }

    @Test func refusesADirectoryAndAMissingParent() throws {
        let directory = try TemporaryDirectory()
        try directory.makeDirectory("file")
        for exclusive in [false, true] {
            let error = errorNumber {
                try Self.replace(directory, Self.new, exclusive: exclusive, LinuxSystemCalls.shared)
            }
            #expect(error == (exclusive ? EEXIST : EISDIR))
        }
        #expect(try directory.names() == ["file"])
        let bytes: [UInt8] = []
        for (path, number) in [("missing/f", ENOENT), ("f/", EISDIR)] as [(FilePath, Int32)] {
            #expect(
                errorNumber {
                    try bytes.withUnsafeBytes {
                        try AtomicFile.replace(path, in: directory.descriptor, with: $0, LinuxSystemCalls.shared)
                    }
                } == number)
        }
    }

    /// Old content or new, and no third name, whichever call fails.
    @Test(arguments: Abilities.allCases, [false, true])
    func everyFailureLeavesOldOrNewAndNothingElse(abilities: Abilities, afterwards: Bool) throws {
        for exclusive in [false, true] {
            let runs = try failingEveryCall(
                afterwards: afterwards,
                // A removal that the kernel refuses, or a look before it, cannot be made up for.
                matching: { $0.operation != .unlink && $0.operation != .statusOfPath }
            ) {
                let directory = try TemporaryDirectory(.memory)
                if !exclusive { try directory.write(Self.old, to: "file") }
                return directory
            } _: { directory, system in
                try Self.replace(directory, Self.new, exclusive: exclusive, abilities.limit(system))
            } check: { directory, failure, error in
                let names = try directory.names()
                if names.isEmpty {
                    #expect(exclusive && error != nil, "\(failure)")
                    return
                }
                #expect(names == ["file"], "\(failure)")
                let bytes = try directory.read("file")
                let isNew = bytes == Self.new
                let isOld = bytes == Self.old && !exclusive
                #expect(isNew || isOld, "\(failure)")
                #expect(isNew || error != nil, "\(failure)")
                // New in spite of an error: only when the last step failed, or the error came after the deed.
                if isNew, error != nil {
                    #expect(afterwards || (!exclusive && failure.calls.contains("fsync")), "\(failure)")
                }
            }
            #expect(runs >= 4 * 8)
        }
    }

    @Test(arguments: Abilities.allCases, [false, true])
    func contentThatCouldNotBeSynchronisedNeverGetsTheName(abilities: Abilities, exclusive: Bool) throws {
        let directory = try TemporaryDirectory()
        if !exclusive { try directory.write(Self.old, to: "file") }
        let failing = FailingCalls(plan: .from(1), errorNumber: EIO) { call in
            guard call.operation == .synchronize, let descriptor = call.descriptor else { return false }
            return (try? LinuxSystemCalls.shared.status(descriptor).kind) == .regular
        }
        #expect(
            errorNumber { try Self.replace(directory, Self.new, exclusive: exclusive, abilities.limit(failing.system)) }
                == EIO)
        #expect(failing.count == 1)
        #expect(try directory.names() == (exclusive ? [] : ["file"]))
        if !exclusive { #expect(try directory.read("file").count == Self.old.count) }
    }

    @Test(arguments: Abilities.allCases)
    func powerCuts(abilities: Abilities) throws {
        for exclusive in [false, true] {
            let directory = try TemporaryDirectory(.memory)
            if !exclusive { try directory.write(Self.old, to: "file") }
            let recording = try RecordingCalls(of: directory.path)
            try Self.replace(directory, Self.new, exclusive: exclusive, abilities.limit(recording.system))
            recording.mark("returned")
            struct Broken: Error {}
            let report = try PowerCut(recording).check("AtomicFile.replace, \(abilities)") { image in
                let names = try image.directory.names()
                guard names.allSatisfy({ $0 == "file" || StagedFile.isTemporaryName(FilePath($0) ?? "") }) else {
                    throw Broken()
                }
                let bytes = names.contains("file") ? try image.directory.read("file") : nil
                guard bytes == Self.new || (!image.has("returned") && bytes == (exclusive ? nil : Self.old)) else {
                    throw Broken()
                }
            }
            #expect(report.violationCount == 0, "\(report)")
            #expect(report.imageCount >= 3)
        }
    }

    @Test func temporaryNamesAreRecognised() {
        for (name, isTemporary) in [
            (".candado-tmp-0123456789abcdef", true), (".candado-tmp-0123456789abcde", false),
            (".candado-tmp-0123456789abcdef0", false), ("candado-tmp-0123456789abcdefg", false), ("", false),
        ] as [(FilePath, Bool)] {
            #expect(StagedFile.isTemporaryName(name) == isTemporary)
        }
    }

    @Test(
        .enabled(if: MountedImage.unavailable == nil, "\(MountedImage.unavailable ?? "")"),
        arguments: MountedImage.Kind.allCases)
    func aFullOrReadOnlyDiskKeepsTheOldContent(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 8 << 20)
        let calls = LinuxSystemCalls.shared
        let path = image.path.appending("file")
        let large = [UInt8](repeating: 3, count: 1 << 20)
        func replace(_ bytes: [UInt8]) throws {
            try bytes.withUnsafeBytes { try AtomicFile.replace(path, with: $0, calls) }
        }
        func names() throws -> Set<FilePath> {
            let opened = try calls.openFile(image.path, [.read, .directory])
            return Set(try calls.entries(opened.number).map(\.name)).subtracting(["lost+found"])
        }
        try replace(Self.old)
        try image.fill(leaving: 64 << 10)
        #expect(errorNumber { try replace(large) } == ENOSPC)
        #expect(try SafeFile.read(path, maximumSize: 1 << 20, ownerOnly: true, calls) == Self.old)
        #expect(try names() == ["file", "filler"])
        // Cut first: a program that another test starts may share the filler's descriptor until it runs, and with it its room.
        _ = try calls.openFile(image.path.appending("filler"), [.write, .truncate])
        try calls.unlink(image.path.appending("filler"), in: currentDirectory)
        try replace(large)
        try image.remount(readOnly: true)
        #expect(errorNumber { try replace(Self.old) } == EROFS)
        #expect(try SafeFile.read(path, maximumSize: 1 << 20, ownerOnly: true, calls) == large)
        try image.remount(readOnly: false)
        try replace(Self.old)
        #expect(try names() == ["file"])
    }
}
