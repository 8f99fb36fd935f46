import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct InterceptionTests {
    /// One use of every call, on files made for it.
    private static func useEverything(_ directory: TemporaryDirectory, _ system: any SystemCalls) throws {
        let top = directory.descriptor
        func attempt(_ body: () throws -> Void) { try? body() }
        attempt { try system.close(try system.open("new", in: top, [.write, .create], permissions: 0o600)) }
        let file = try LinuxSystemCalls.shared.openFile("file", in: top, [.read, .write])
        let reader = try LinuxSystemCalls.shared.openFile("leased", in: top, [.read])
        let number = file.number
        var buffer = [UInt8](repeating: 5, count: 8)
        attempt { try system.close(try system.duplicate(number)) }
        attempt { _ = try buffer.withUnsafeMutableBytes { try system.read(number, into: $0) } }
        attempt { _ = try buffer.withUnsafeMutableBytes { try system.read(number, into: $0, at: 1) } }
        attempt { _ = try buffer.withUnsafeBytes { try system.write(number, $0) } }
        attempt { _ = try buffer.withUnsafeBytes { try system.write(number, $0, at: 2) } }
        attempt { try system.truncate(number, to: 3) }
        attempt { try system.allocate(number, offset: 0, length: 4) }
        attempt { try system.synchronize(number, dataOnly: false) }
        attempt { try system.synchronize(number, dataOnly: true) }
        attempt { try system.synchronizeFileSystem(number) }
        attempt { _ = try system.status(number) }
        attempt { _ = try system.status(of: "file", in: top, followLinks: false) }
        attempt { try system.rename("from", in: top, to: "to", in: top, replacing: .forbidden) }
        attempt { try system.link(number, to: "link", in: top) }
        attempt { try system.unlink("doomed", in: top) }
        attempt { try system.removeDirectory("emptied", in: top) }
        attempt { try system.makeDirectory("made", in: top, permissions: 0o700) }
        attempt { _ = try system.readDirectory(top) }
        attempt { _ = try system.attribute("user.a", of: number) }
        attempt { _ = try buffer.withUnsafeMutableBytes { try system.attribute("user.a", of: number, into: $0) } }
        attempt { _ = try system.attribute("user.a", of: "file", in: top) }
        attempt {
            _ = try buffer.withUnsafeMutableBytes { try system.attribute("user.a", of: "file", in: top, into: $0) }
        }
        attempt { try system.setAttribute("user.b", of: number, to: [1], replacing: .allowed) }
        attempt { try system.removeAttribute("user.a", of: number) }
        attempt { _ = try system.attributeNames(of: number) }
        attempt { try system.changeOwner(number, owner: .max, group: .max) }
        attempt { try system.changePermissions(number, to: 0o640) }
        attempt {
            try system.setTimes(
                number, access: FileTime(seconds: 1, nanoseconds: 0), modification: FileTime(seconds: 2, nanoseconds: 0)
            )
        }
        attempt { _ = try system.lock(number, .exclusive, start: 1, count: 2, wait: false) }
        attempt { _ = try system.isLocked(number, start: 1, count: 2) }
        attempt { try system.takeReadLease(reader.number) }
        attempt { _ = try system.leaseState(reader.number) }
        attempt { try system.dropLease(reader.number) }
        attempt { _ = try system.fileSystem(top) }
        attempt { try buffer.withUnsafeMutableBytes { try system.random(into: $0) } }
    }

    private static func makeFiles() throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        for name: FilePath in ["file", "leased", "from", "doomed"] { try directory.write([1, 2, 3, 4, 5], to: name) }
        try directory.makeDirectory("emptied")
        let file = try LinuxSystemCalls.shared.openFile("file", in: directory.descriptor, [.read])
        try LinuxSystemCalls.shared.setAttribute("user.a", of: file.number, to: [1], replacing: .allowed)
        return directory
    }

    @Test func everyCallIsAnnouncedAndObserved() throws {
        let announced = Mutex<[SystemOperation]>([])
        let observed = Mutex<[SystemOperation]>([])
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                announced.withLock { $0.append(call.operation) }
                return .proceed
            }, observe: { call, _ in observed.withLock { $0.append(call.operation) } })
        try Self.useEverything(try Self.makeFiles(), system)
        let names = announced.withLock { $0 }
        #expect(Set(names) == Set(SystemOperation.allCases))
        #expect(names == observed.withLock { $0 })
    }

    /// A failed call must not have happened.
    @Test func aFailedCallChangesNothing() throws {
        let directory = try Self.makeFiles()
        func look() throws -> [String] {
            let calls = LinuxSystemCalls.shared
            return try directory.names().map { name in
                let opened = try calls.openFile(FilePath(name) ?? "", in: directory.descriptor, [.read])
                var status = try calls.status(opened.number)
                status.accessTime = status.modificationTime
                return "\(name) \(status) \(try calls.attributeNames(of: opened.number))"
            }
        }
        let before = try look()
        let failing = FailingCalls(plan: .from(1), errorNumber: EIO)
        try Self.useEverything(directory, failing.system)
        #expect(try look() == before)
        #expect(failing.leaked.isEmpty)
        #expect(failing.failed.count > 30)
    }

    @Test func theErrorNamesTheCallAsTheKernelsOwnErrorWould() throws {
        let directory = try TemporaryDirectory()
        func error(_ system: any SystemCalls, _ body: (any SystemCalls) throws -> Void) -> SystemError? {
            do {
                try body(system)
                return nil
            } catch { return error as? SystemError }
        }
        let failing = FailingCalls(plan: .from(1), errorNumber: ENOENT).system
        let uses: [(any SystemCalls) throws -> Void] = [
            { _ = try $0.open("none", in: directory.descriptor, [.read], permissions: 0) },
            { _ = try $0.status(of: "none", in: directory.descriptor, followLinks: true) },
            { try $0.unlink("none", in: directory.descriptor) },
            { try $0.removeDirectory("none", in: directory.descriptor) },
            { try $0.makeDirectory("none/none", in: directory.descriptor, permissions: 0) },
            {
                try $0.rename("none", in: directory.descriptor, to: "to", in: directory.descriptor, replacing: .allowed)
            },
            { _ = try $0.attribute("user.a", of: "none", in: directory.descriptor) },
        ]
        for use in uses {
            let real = try #require(error(LinuxSystemCalls.shared, use))
            #expect(error(failing, use) == real)
        }
    }

    @Test func failingAfterwardsKeepsTheEffectAndClosesWhatWasOpened() throws {
        let directory = try Self.makeFiles()
        let failing = FailingCalls(plan: .from(1), errorNumber: EIO, afterwards: true)
        try Self.useEverything(directory, failing.system)
        let names = try directory.names()
        #expect(Set(["link", "made", "new", "to"]).isSubset(of: names))
        #expect(Set(["doomed", "emptied", "from"]).isDisjoint(with: names))
        #expect(try directory.read("file").count == 4)
    }

    @Test func shorteningAppliesToBytesReadAndWritten() throws {
        let directory = try Self.makeFiles()
        for (limit, expected) in [(0, 1), (1, 1), (3, 3), (5, 5), (100, 5)] {
            let system = ShortCalls.limited(to: limit)
            let file = try system.openFile("file", in: directory.descriptor, [.read, .write])
            var bytes = [UInt8](repeating: 9, count: 5)
            #expect(try bytes.withUnsafeMutableBytes { try system.read(file.number, into: $0, at: 0) } == expected)
            #expect(bytes == Array([1, 2, 3, 4, 5].prefix(expected)) + [UInt8](repeating: 9, count: 5 - expected))
            let written = try [UInt8]([1, 2, 3, 4, 5]).withUnsafeBytes { try system.write(file.number, $0, at: 0) }
            #expect(written == expected)
        }
    }

    @Test func randomShorteningIsTheSameEachTime() throws {
        let directory = try TemporaryDirectory()
        try directory.write([UInt8](repeating: 1, count: 1000), to: "file")
        func counts(_ seed: UInt64) throws -> [Int] {
            let system = ShortCalls.random(seed: seed)
            let file = try system.openFile("file", in: directory.descriptor, [.read])
            var bytes = [UInt8](repeating: 0, count: 1000)
            return try (0..<20).map { _ in
                try bytes.withUnsafeMutableBytes { try system.read(file.number, into: $0, at: 0) }
            }
        }
        #expect(try counts(1) == counts(1))
        #expect(try counts(1) != counts(2))
        #expect(try Set(counts(3)).count > 10)
    }

    @Test func theDescriptionCarriesWhatIsWritten() throws {
        let directory = try Self.makeFiles()
        let seen = Mutex<[String]>([])
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                guard call.isMutation else { return .proceed }
                let text =
                    "\(call.name) \(call.offset ?? -1) \(call.count ?? -1) \(call.bytes.map { Array($0) } ?? []) \(call.path ?? "-") \(call.source ?? "-") \(call.attribute ?? "-")"
                seen.withLock { $0.append(text) }
                return .proceed
            })
        let file = try system.openFile("file", in: directory.descriptor, [.write])
        try system.write([7, 8], to: file.number, at: 3)
        try system.setAttribute("user.x", of: file.number, to: [6], replacing: .allowed)
        try system.rename("from", in: directory.descriptor, to: "to", in: directory.descriptor, replacing: .allowed)
        try system.truncate(file.number, to: 1)
        #expect(
            seen.withLock { $0 } == [
                "pwrite 3 2 [7, 8] - - -", "fsetxattr -1 -1 [6] - - user.x", "renameat2 -1 -1 [] to from -",
                "ftruncate -1 1 [] - - -",
            ])
    }
}
