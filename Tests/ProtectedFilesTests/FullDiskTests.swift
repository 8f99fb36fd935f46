import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// Disks that are really full, read-only, or without room for attributes: clear errors, nothing lost, nothing written.
@Suite(.enabled(if: MountedImage.unavailable == nil, "needs to mount")) struct FullDiskTests {
    private let fixture: FilesFixture
    private static let size = 16 << 20

    init() throws { fixture = try FilesFixture() }

    private var files: ProtectedFileSystem { fixture.files }

    private func free(_ image: MountedImage) throws {
        // Cut first: a program that another test starts may share its descriptor until it runs, and with it its room.
        _ = try LinuxSystemCalls.shared.openFile(image.path.appending("filler"), [.write, .truncate])
        try LinuxSystemCalls.shared.unlink(image.path.appending("filler"), in: currentDirectory)
    }

    private func names(_ image: MountedImage) throws -> [String] {
        let directory = try LinuxSystemCalls.shared.openFile(image.path, [.read, .directory])
        return try LinuxSystemCalls.shared.entries(directory.number).map(\.name.description)
            .filter { $0 != "lost+found" && $0 != "filler" }.sorted()
    }

    /// Field report DL-05: the disk fills up during a write.
    @Test(arguments: MountedImage.Kind.allCases)
    func wholeFilesUntilNothingFits(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: Self.size)
        let content = pattern(1 << 20)
        var written: [FilePath] = []
        var failure: ProtectionError.Code?
        while failure == nil, written.count < 64 {
            let path = image.path.appending(FilePath("file\(written.count)")!)
            failure = code { try files.write(content, to: path, class: .complete) }
            if failure == nil { written.append(path) }
        }
        #expect(failure == .system(ErrorNumber.noSpace))
        #expect(written.count > 5)
        #expect(try names(image).count == written.count, "something was left behind")
        for path in written { #expect(try files.contents(of: path) == content) }
        // Replacing needs room as well; what is there stays.
        #expect(code { try files.write(pattern(1 << 20, seed: 2), to: written[0]) } == .system(ErrorNumber.noSpace))
        #expect(try files.contents(of: written[0]) == content)
        try LinuxSystemCalls.shared.unlink(written.removeLast(), in: currentDirectory)
        try LinuxSystemCalls.shared.unlink(written.removeLast(), in: currentDirectory)
        try files.write(pattern(1 << 20, seed: 2), to: written[0])
        #expect(try files.contents(of: written[0]) == pattern(1 << 20, seed: 2))
        #expect(try files.contents(of: written[1]) == content)
    }

    /// A slip in a length must not fill the disk with zeros before it is told.
    @Test(arguments: MountedImage.Kind.allCases, [UInt64(20) << 20, 1 << 40, 1 << 60])
    func growingBeyondTheDiskFailsBeforeItBegins(kind: MountedImage.Kind, length: UInt64) throws {
        let image = try MountedImage(kind, size: Self.size)
        let path = image.path.appending("file")
        let content = pattern(10_000)
        try files.write(content, to: path, class: .complete)
        let system = LinuxSystemCalls.shared
        let before = try system.status(of: path, in: currentDirectory, followLinks: false).size
        let file = try files.open(path, for: .updating)
        #expect(code { try file.truncate(to: length) } == .system(ErrorNumber.noSpace))
        let far = code { try [UInt8(1)].withUnsafeBytes { try file.write($0, at: length - 1) } }
        #expect(far == .system(ErrorNumber.noSpace))
        #expect(try file.length == 10_000)
        #expect(try system.status(of: path, in: currentDirectory, followLinks: false).size == before)
        try file.truncate(to: 20_000)
        try file.close()
        #expect(try files.contents(of: path) == content + [UInt8](repeating: 0, count: 10_000))
    }

    /// Field report DL-05 for writes through a handle: overwriting needs room for the log.
    @Test(arguments: MountedImage.Kind.allCases, [0, 20_000, 300_000])
    func aHandleUntilNothingFits(kind: MountedImage.Kind, left: Int) throws {
        let image = try MountedImage(kind, size: Self.size)
        let path = image.path.appending("file")
        var content = pattern(1 << 20)
        try files.write(content, to: path, class: .complete)
        try files.write(pattern(5000), to: image.path.appending("other"))
        try image.fill(leaving: left)
        let handle = try files.open(path, for: .updating)
        var failure: ProtectionError.Code?
        var round = 0
        while failure == nil, round < 2000 {
            let bytes = pattern(7000, seed: UInt64(round))
            let offset = round % 3 == 2 ? content.count : (round * 9973) % (content.count - bytes.count)
            failure = code { try handle.write(bytes, at: offset) }
            if failure == nil {
                let overlap = min(bytes.count, content.count - offset)
                content.replaceSubrange(offset..<(offset + overlap), with: bytes[..<overlap])
                content += bytes[overlap...]
            }
            round += 1
        }
        #expect(failure == .system(ErrorNumber.noSpace))
        // What succeeded is there, through this handle and a fresh one.
        #expect(try handle.allContent() == content)
        #expect(try files.open(path, for: .reading).allContent() == content)
        // What was written can be made durable without more room: its places are there.
        #expect(code { try handle.synchronize() } == nil)
        try free(image)
        try handle.write([1, 2, 3], at: 10)
        content.replaceSubrange(10..<13, with: [1, 2, 3])
        try handle.close()
        #expect(try files.contents(of: path) == content)
        #expect(try files.contents(of: image.path.appending("other")) == pattern(5000))
        try CrashScript.checkTidy(path, length: content.count)
    }

    /// Closed, or simply gone, while the disk is full: the next one to open the file finds everything, even while it is
    /// still full.
    @Test(arguments: MountedImage.Kind.allCases, [false, true])
    func closingOnAFullDiskLosesNothing(kind: MountedImage.Kind, isClosed: Bool) throws {
        let image = try MountedImage(kind, size: Self.size)
        let path = image.path.appending("file")
        var content = pattern(100_000)
        try files.write(content, to: path, class: .complete)
        do {
            let handle = try files.open(path, for: .updating)
            try handle.write([7, 7, 7], at: 50_000)
            content.replaceSubrange(50_000..<50_003, with: [7, 7, 7])
            try image.fill()
            #expect(code { try handle.write(pattern(1 << 20), at: 0) } == .system(ErrorNumber.noSpace))
            if isClosed { try handle.close() }
        }
        #expect(try files.contents(of: path) == content)
        // Finishing the log needs no room.
        try files.open(path, for: .updating).close()
        #expect(try files.contents(of: path) == content)
        try free(image)
        let writer = try files.open(path, for: .updating)
        try writer.write([1], at: 0)
        try writer.close()
        #expect(try files.contents(of: path) == [1] + content[1...])
    }

    /// `protect -r` and back until nothing fits: every file has one form or the other.
    @Test(arguments: MountedImage.Kind.allCases)
    func convertingATreeUntilNothingFits(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: Self.size)
        var contents: [FilePath: [UInt8]] = [:]
        for number in 0..<6 {
            let name = FilePath("file\(number)")!
            contents[name] = pattern(1_500_000 + number, seed: UInt64(number))
            let file = try LinuxSystemCalls.shared.openFile(image.path.appending(name), [.write, .create])
            try contents[name]!.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 0) }
        }
        // Less room than one more of them; a batch needs more.
        try image.fill(leaving: 1_000_000)
        var options = TreeConversion.Options()
        options.recursive = true
        func run(_ conversion: Conversion) throws -> [ProtectionError.Code] {
            let failures = Mutex<[ProtectionError.Code]>([])
            try TreeConversion(files, conversion, options: options) { outcome in
                if case .failed(let error) = outcome.result { failures.withLock { $0.append(error.code) } }
            }.run(image.path)
            return failures.withLock { $0 }
        }
        let failures = try run(.protect(.complete))
        // The filler is a plain file like the others.
        #expect(failures.count == 7 && failures.allSatisfy { $0 == .system(ErrorNumber.noSpace) }, "\(failures)")
        #expect(try names(image).count == 6, "something was left behind")
        for (name, content) in contents {
            let bytes = try SafeFile.read(
                image.path.appending(name), in: currentDirectory, maximumSize: 1 << 24, ownerOnly: false, files.system)
            #expect(bytes == content)
        }
        try free(image)
        #expect(try run(.protect(.complete)).filter { $0 != .system(ErrorNumber.noSpace) }.isEmpty)
        // Where a batch did not fit, another run goes on with the rest.
        for _ in 0..<6 { _ = try run(.protect(.complete)) }
        for (name, content) in contents {
            if code({ try files.contents(of: image.path.appending(name)) }) == .notProtected {
                Issue.record("\(name) is still plain")
            } else {
                #expect(try files.contents(of: image.path.appending(name)) == content)
            }
        }
    }

    /// A tree that is a mount point, or has one in it: new forms are durable on their own file system before they get
    /// their names, and the names are at the end.
    @Test(arguments: [false, true])
    func everyFileSystemOfATreeIsSynchronised(isInside: Bool) throws {
        let image = try MountedImage(.tmpfs, size: Self.size)
        let outside = try TemporaryDirectory(.inside(isInside ? image.path : "/tmp"))
        var roots = [image.path]
        var inner: MountedImage?
        if isInside {
            inner = try MountedImage(.tmpfs, size: Self.size, at: outside.path)
            roots.append(outside.path)
        }
        for root in roots {
            for number in 0..<3 {
                let path = root.appending(FilePath("file\(number)")!)
                let file = try LinuxSystemCalls.shared.openFile(path, [.write, .create])
                try pattern(5000).withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 0) }
            }
        }
        @Sendable func device(_ descriptor: Int32?) -> UInt64 {
            (descriptor.flatMap { try? LinuxSystemCalls.shared.status($0) })?.device ?? 0
        }
        let events = Mutex<[(what: String, device: UInt64)]>([])
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            observe: { call, _ in
                switch call.operation {
                case .writeAt: events.withLock { $0.append(("write", device(call.descriptor))) }
                case .synchronizeFileSystem, .synchronize:
                    events.withLock { $0.append(("sync", device(call.descriptor))) }
                case .rename: events.withLock { $0.append(("rename", device(call.directory))) }
                default: break
                }
            })
        var options = TreeConversion.Options()
        options.recursive = true
        options.crossesFileSystems = true
        try TreeConversion(
            ProtectedFileSystem(keys: fixture.keybag, system: system), .protect(.complete), options: options
        ) { outcome in
            if case .failed(let error) = outcome.result { Issue.record("\(error)") }
        }.run(image.path)
        let devices = Set(
            try roots.map {
                try LinuxSystemCalls.shared.status(of: $0, in: currentDirectory, followLinks: false).device
            })
        #expect(devices.count == roots.count)
        for device in devices {
            let own = events.withLock { $0 }.filter { $0.device == device }.map(\.what)
            #expect(own.filter { $0 == "rename" }.count == 3)
            let order = own.reduce(into: [String]()) { if $0.last != $1 { $0.append($1) } }
            #expect(order == ["write", "sync", "rename", "sync"], "\(own)")
        }
        for root in roots {
            for number in 0..<3 {
                #expect(try files.contents(of: root.appending(FilePath("file\(number)")!)) == pattern(5000))
            }
        }
        _ = consume inner
    }

    @Test(arguments: MountedImage.Kind.allCases)
    func aReadOnlyDiskCanBeReadAndIsNotWrittenTo(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: Self.size)
        let path = image.path.appending("file")
        var content = pattern(20_000)
        try files.write(content, to: path, class: .complete)
        do {
            // Left open without closing: a log stays.
            let handle = try files.open(path, for: .updating)
            try handle.write([5], at: 4096)
            content[4096] = 5
        }
        try image.remount(readOnly: true)
        let readOnly = ProtectionError.Code.system(ErrorNumber.readOnlyFileSystem)
        #expect(try files.contents(of: path) == content)
        #expect(code { try files.open(path, for: .updating) } == readOnly)
        #expect(code { try files.write(content, to: path) } == readOnly)
        #expect(code { try files.write(content, to: image.path.appending("new")) } == readOnly)
        #expect(code { try files.setProtectionClass(of: path, to: .none) } == readOnly)
        #expect(code { try files.setProtectionClass(of: path, to: .none, rekey: true) } == readOnly)
        #expect(code { try files.repair(path) } == readOnly)
        #expect(code { try files.open(image.path.appending("new"), for: .creating(nil)) } == readOnly)
        #expect(try FileInspection.inspect(path).protectionClass == .complete)
        try image.remount(readOnly: false)
        #expect(try files.repair(path).mended == [.interruptedWrite])
        #expect(try files.contents(of: path) == content)
    }

    /// An ext4 inode of 256 bytes whose room and whose one attribute block are used up.
    @Test func noRoomForTheAttribute() throws {
        let image = try MountedImage(.ext4, size: Self.size)
        let path = image.path.appending("file")
        let content = pattern(5000)
        try files.write(content, to: path, class: .completeUntilFirstUserAuthentication)
        let file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
        Self.fillAttributes(file.number)
        let before = try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number)
        // Class B's record is longer than the others.
        let failure = code { try files.setProtectionClass(of: path, to: .completeUnlessOpen) }
        #expect(failure == .system(ErrorNumber.noSpace))
        #expect(try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number) == before)
        let inspection = try FileInspection.inspect(path, comparingHeaders: true)
        #expect(inspection.place == .both && inspection.protectionClass == .completeUntilFirstUserAuthentication)
        #expect(try files.contents(of: path) == content)
        // The same length finds room.
        #expect(try files.setProtectionClass(of: path, to: .complete).changed)
        #expect(try files.contents(of: path) == content)

        // A plain file whose attributes leave no room for a record.
        let plain = image.path.appending("plain")
        let made = try LinuxSystemCalls.shared.openFile(plain, [.read, .write, .create])
        try content.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(made.number, $0, at: 0) }
        Self.fillAttributes(made.number)
        let names = try LinuxSystemCalls.shared.attributeNames(of: made.number)
        _ = consume made
        let failures = Mutex<[ProtectionError]>([])
        try TreeConversion(files, .protect(.complete)) { outcome in
            if case .failed(let error) = outcome.result { failures.withLock { $0.append(error) } }
        }.run(plain)
        #expect(failures.withLock { $0.map(\.code) } == [.system(ErrorNumber.noSpace)])
        #expect(failures.withLock { $0.first?.message.contains("attribute") } == true)
        let now = try LinuxSystemCalls.shared.openFile(plain, [.read])
        #expect(try LinuxSystemCalls.shared.attributeNames(of: now.number).sorted() == names.sorted())
        let bytes = try SafeFile.read(plain, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, files.system)
        #expect(bytes == content)
        #expect(try self.names(image) == ["file", "plain"])
    }

    private static func fillAttributes(_ descriptor: Int32) {
        var number = 0
        for size in [1000, 100, 10, 1] {
            while (try? LinuxSystemCalls.shared.setAttribute(
                "user.filler\(number)", of: descriptor, to: [UInt8](repeating: 1, count: size), replacing: .allowed))
                != nil
            { number += 1 }
        }
    }
}

/// File systems that lack what is needed: refused, and nothing is written.
@Suite struct FaultyFileSystemTests {
    /// Field report XA-07. No such file system can be mounted everywhere, so its answers are imitated.
    @Test(arguments: [true, false])
    func withoutUserAttributesNothingIsWritten(unnamed: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.directory.write(pattern(100), to: "files/plain")
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                switch call.operation {
                case .setAttribute, .attribute, .attributeOfPath, .removeAttribute, .attributeNames:
                    throw call.failure(ErrorNumber.notSupported)
                case .open where !unnamed && call.options?.contains(.unnamed) == true:
                    throw call.failure(ErrorNumber.notSupported)
                default: return .proceed
                }
            })
        let files = ProtectedFileSystem(keys: fixture.keybag, system: system)
        #expect(code { try files.write(pattern(100), to: path) } == .unsupported)
        #expect(code { try files.write(pattern(100), to: path, class: ProtectionClass.none) } == .unsupported)
        #expect(code { try files.open(path, for: .creating(.complete)) } == .unsupported)
        let failures = Mutex<[ProtectionError.Code]>([])
        try TreeConversion(files, .protect(.complete)) { outcome in
            if case .failed(let error) = outcome.result { failures.withLock { $0.append(error.code) } }
        }.run(fixture.path("plain"))
        #expect(failures.withLock { $0 } == [.unsupported])
        #expect(try fixture.directory.names(in: "files") == ["plain"])
        #expect(try fixture.directory.read("files/plain") == pattern(100))
    }

    /// Where range locks do not work, files can be read, but not opened for writing.
    @Test(arguments: Array(ErrorNumber.withoutLocks))
    func withoutLocksFilesCanOnlyBeRead(errorNumber: Int32) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(9000), to: path, class: .complete)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if [.lock, .isLocked].contains(call.operation) { throw call.failure(errorNumber) }
                return .proceed
            })
        let files = ProtectedFileSystem(keys: fixture.keybag, system: system)
        #expect(try files.contents(of: path) == pattern(9000))
        #expect(try files.open(path, for: .reading).allContent() == pattern(9000))
        #expect(code { try files.open(path, for: .updating) } == .unsupported)
        // Damage is still damage.
        let file = try LinuxSystemCalls.shared.openFile(path, [.write])
        try [UInt8](repeating: 1, count: 9).withUnsafeBytes {
            try LinuxSystemCalls.shared.writeFully(file.number, $0, at: 5000)
        }
        #expect(code { try files.contents(of: path) } == .damaged(.chunk))
        #expect(code { try files.open(path, for: .reading).allContent() } == .damaged(.chunk))
    }
}
