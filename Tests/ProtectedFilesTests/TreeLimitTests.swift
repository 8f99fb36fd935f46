import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Trees that are deep or wide, few descriptors, and places that must not be touched.
@Suite struct TreeLimitTests {
    /// System calls of a process that may have so many files open.
    private final class FewDescriptors: Sendable {
        private let open = Mutex<Set<Int32>>([])
        private let most = Mutex(0)
        let limit: Int
        init(_ limit: Int) { self.limit = limit }

        var peak: Int { most.withLock { $0 } }

        var system: any SystemCalls {
            InterceptedSystemCalls(
                LinuxSystemCalls.shared,
                intercept: { [self] call throws(SystemError) in
                    if call.operation == .open || call.operation == .duplicate, open.withLock({ $0.count }) >= limit {
                        throw call.failure(EMFILE)
                    }
                    return .proceed
                },
                observe: { [self] call, result in
                    switch call.operation {
                    case .open, .duplicate: _ = open.withLock { $0.insert(Int32(result)) }
                    case .close: _ = open.withLock { $0.remove(call.descriptor ?? -1) }
                    default: break
                    }
                    let count = open.withLock { $0.count }
                    most.withLock { $0 = max($0, count) }
                })
        }
    }

    @Test(arguments: [100, 250, 1000])
    func aWideTreeNeedsFewDescriptors(limit: Int) throws {
        let fixture = try FilesFixture()
        try fixture.shell(
            "python3 - <<'E'\nimport os\nfor d in range(300):\n  os.mkdir(f'd{d}')\n  for i in range(2): open(f'd{d}/f{i}','w').write(f'{d} {i}')\nE"
        )
        for conversion in [Conversion.protect(.complete), .unprotect] {
            let few = FewDescriptors(limit)
            let outcomes = try fixture.convert(
                fixture.path("."), conversion, system: few.system, descriptorLimit: few.limit)
            #expect(outcomes.count("changed") == 600, "\(outcomes.codes.prefix(3))")
            // Two threads may count past each other.
            #expect(few.peak <= limit + 2)
        }
        #expect(try fixture.output("cat d7/f1") == "7 1")
    }

    /// Deeper than paths may be long, and than a process may have directories open.
    @Test func aDeepTreeIsWalkedWithoutKeepingItOpen() throws {
        let fixture = try FilesFixture()
        let depth = getenv("CANDADO_LONG") != nil ? 5000 : 2000
        try fixture.shell(
            "python3 - <<'E'\nimport os\nfor d in range(\(depth)):\n  open('file','w').write(str(d)); os.mkdir('d'); os.chdir('d')\nE"
        )
        let few = FewDescriptors(600)
        let outcomes = try fixture.convert(
            fixture.path("."), .protect(.complete), system: few.system, descriptorLimit: few.limit)
        #expect(outcomes.count("changed") == depth, "\(outcomes.codes.prefix(3))")
        let again = try fixture.convert(fixture.path("."), .unprotect, system: few.system, descriptorLimit: few.limit)
        #expect(again.count("changed") == depth, "\(again.codes.prefix(3))")
        #expect(few.peak < 600)
        try fixture.shell(
            "python3 - <<'E'\nimport os\nfor d in range(\(depth)):\n  assert open('file').read() == str(d); assert os.listxattr('.') == []; os.chdir('d')\nE"
        )
    }

    @Test func aDirectoryOfManyFilesIsConverted() throws {
        let fixture = try FilesFixture()
        let count = getenv("CANDADO_LONG") != nil ? 20_000 : 3000
        try fixture.shell("python3 - <<'E'\nfor i in range(\(count)): open(f'f{i}','w').write(str(i))\nE")
        let few = FewDescriptors(900)
        let outcomes = try fixture.convert(
            fixture.path("."), .protect(.complete), system: few.system, descriptorLimit: few.limit)
        #expect(outcomes.count("changed") == count, "\(outcomes.codes.prefix(3))")
        #expect(try fixture.files.contents(of: fixture.path("f1234")) == Array("1234".utf8))
    }

    /// By its path, through a link, from below, from above, and as one file of it.
    @Test func ownHomeIsRefusedFromEverySide() throws {
        let fixture = try FilesFixture()
        try fixture.shell(
            "mkdir -p tree/own/state/deep; echo precious > tree/own/keybag; echo precious > tree/own/state/deep/key; echo other > tree/other; ln -s tree/own link"
        )
        let own = FileIdentity(try fixture.status(fixture.path("tree/own")))
        let before = try fixture.output(
            "find tree/own -printf '%p %i %C@\\n'; cat tree/own/keybag tree/own/state/deep/key")
        let refused: [FilePath] = [
            "tree/own", "tree/own/", "tree/own/.", "link/", "tree/../tree/own", "tree/own/state",
            "tree/own/state/deep/..",
            "tree/own/keybag", "tree/own/state/deep/key", "link/keybag",
        ]
        for path in refused {
            for conversion in [Conversion.protect(.complete), .unprotect] {
                let outcomes = try fixture.convert(fixture.path(path), conversion, excluded: [own])
                #expect(outcomes.codes == [.unsupported], "\(path): \(outcomes.words)")
            }
        }
        // On the way through a tree it is left out.
        let outcomes = try fixture.convert(fixture.path("tree"), .protect(.complete), excluded: [own])
        #expect(outcomes.words == ["other: changed", "own: skipped, Candado's own home"])
        #expect(
            try fixture.output("find tree/own -printf '%p %i %C@\\n'; cat tree/own/keybag tree/own/state/deep/key")
                == before)
    }

    @Test(.enabled(if: MountedImage.unavailable == nil, "mounting does not work here"))
    func otherFileSystemsAreEnteredOnlyWhenAsked() throws {
        let fixture = try FilesFixture(.disk)
        let image = try MountedImage(.ext4, size: 16 << 20)
        try fixture.shell("mkdir -p tree/mounted tree/bound; echo here > tree/here; echo home > tree/bound/file")
        let target = fixture.path("tree/mounted").description
        try fixture.shell(
            "mount --bind \(image.path) \(target); rm -rf \(target)/lost+found; echo there > \(target)/there")
        defer { _ = try? Command.run("umount", ["-l", target]) }
        let outside = try fixture.convert(fixture.path("tree"), .protect(.complete))
        #expect(outside.words == ["file: changed", "here: changed", "mounted: skipped, on another file system"])
        // Every file system gets a sync of its own before names are given, and one after.
        let synchronized = Mutex<[UInt64]>([])
        let renamed = Mutex<[UInt64: Int]>([:])
        let base = LinuxSystemCalls.shared
        let system = InterceptedSystemCalls(base) { call throws(SystemError) in
            let place = call.descriptor ?? call.directory
            guard let place, let device = try? base.status(place).device else { return .proceed }
            switch call.operation {
            case .synchronize, .synchronizeFileSystem: synchronized.withLock { $0.append(device) }
            case .rename: renamed.withLock { $0[device] = synchronized.withLock { all in all.count { $0 == device } } }
            default: break
            }
            return .proceed
        }
        let crossing = try fixture.convert(fixture.path("tree"), .unprotect, system: system, crossing: true)
        #expect(crossing.words == ["file: changed", "here: changed", "there: unchanged plain"])
        renamed.withLock { $0 = [:] }
        synchronized.withLock { $0 = [] }
        let all = try fixture.convert(fixture.path("tree"), .protect(.complete), system: system, crossing: true)
        #expect(all.words == ["file: changed", "here: changed", "there: changed"])
        let here = try fixture.status(fixture.path("tree")).device
        let there = try fixture.status(fixture.path("tree/mounted")).device
        #expect(here != there)
        #expect(renamed.withLock { $0[here] ?? 0 } > 0 && renamed.withLock { $0[there] ?? 0 } > 0)
        for device in [here, there] { #expect(synchronized.withLock { all in all.count { $0 == device } } >= 2) }
        // A bind mount of the same file system shows the home by another name.
        let own = FileIdentity(try fixture.status(fixture.path("tree/bound")))
        try fixture.shell("mkdir elsewhere; mount --bind tree/bound elsewhere")
        defer { _ = try? Command.run("umount", ["-l", fixture.path("elsewhere").description]) }
        #expect(try fixture.convert(fixture.path("elsewhere"), .unprotect, excluded: [own]).codes == [.unsupported])
        #expect(
            try fixture.convert(fixture.path("elsewhere/file"), .unprotect, excluded: [own]).codes == [.unsupported])
    }
}
