import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

/// A process that is killed, and disks that are full or cannot be written.
@Suite(.serialized) struct CrashTests {
    private static let rounds = getenv("CANDADO_LONG") == nil ? 25 : 400

    /// Adds and updates until it is killed, and notes each call that returned in a file, which outlives it.
    private static func work(_ directory: String, microseconds: Int, round: Int) throws {
        let home = KeybagHome(directory: (FilePath(directory) ?? ".").appending("home"))
        let keybag = try Keybag.open(home)
        let protection = SealedProtection(keys: keybag)
        let tables = try KeychainStore.open(home.keychain, keys: keybag).tables
        let log = Glibc.open(directory + "/log", O_WRONLY | O_APPEND)
        guard log >= 0 else { return }
        var timer = itimerval(
            it_interval: timeval(), it_value: timeval(tv_sec: 0, tv_usec: suseconds_t(microseconds)))
        setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
        for number in 0... {
            let account = "\(round)-\(number)"
            for value in [1, 2] as [UInt8] {
                var header = ItemHeader(
                    itemClass: .genericPassword, identifier: Array(repeating: 0, count: 8) + account.padded(8),
                    accessGroup: "g", isSynchronizable: false, accessibility: .always)
                let attributes: ItemDictionary = ["acct": .text(account), "svce": .text("s")]
                let content = try protection.seal(attributes, try itemSecret([value]), &header)
                let digests = try protection.digests(of: attributes, header)
                try tables.write { (writer) throws(KeychainError) in
                    var row = ItemRow(
                        header: header, primaryKey: digests.primaryKey, digests: digests.digests, content: content)
                    if value == 1 {
                        _ = try writer.insert(row)
                        return
                    }
                    var filter = RowFilter(.genericPassword)
                    filter.primaryKey = digests.primaryKey
                    try writer.rows(filter) { found in
                        row.number = found.number
                        return false
                    }
                    try writer.replace(row)
                }
                let line = Array("\(account) \(value)\n".utf8)
                _ = Glibc.write(log, line, line.count)
            }
        }
    }

    struct Worker: Codable {
        let directory: String
        let microseconds: Int
        let round: Int
    }

    @Test func whatReturnedIsThereWheneverTheProcessIsKilled() async throws {
        let fixture = try StorageFixture(.disk, passcode: nil)
        try fixture.directory.write([], to: "log")
        var random = DeterministicRandom(seed: 3)
        var acknowledged = 0
        for round in 0..<Self.rounds {
            let worker = Worker(
                directory: fixture.directory.path.description, microseconds: 200 + Int(random.next() % 250_000),
                round: round)
            await #expect(processExitsWith: .signal(SIGALRM)) { [worker = worker as Worker] in
                try CrashTests.work(worker.directory, microseconds: worker.microseconds, round: worker.round)
            }
            var expected: [String: UInt8] = [:]
            for line in String(decoding: try fixture.directory.read("log"), as: UTF8.self).split(separator: "\n") {
                let fields = line.split(separator: " ")
                expected[String(fields[0])] = UInt8(fields[1])
            }
            acknowledged = expected.count
            let tables = try fixture.tables()
            var found: [String: UInt8] = [:]
            for row in try StorageFixture.all(tables) {
                guard case .text(let account)? = try fixture.protection.attributes(of: row)["acct"] else { continue }
                found[account] = try fixture.protection.secret(of: row)?.revealed.first
            }
            for (account, value) in expected {
                #expect((found[account] ?? 0) >= value, "\(account) after round \(round)")
            }
            // At most one call a round did something and never returned.
            #expect(found.count <= expected.count + round + 1)
            #expect(try tables.connect(.reading).texts("PRAGMA integrity_check") == ["ok"])
            #expect(try fixture.store().condition().damagedDatabases == [])
        }
        #expect(acknowledged > Self.rounds, "the workers were killed before they did anything")
    }

    @Test func whereAFileMayNotGrowNothingChangesAndLaterAllWorks() async {
        await #expect(processExitsWith: .success) {
            signal(SIGXFSZ, SIG_IGN)
            let fixture = try StorageFixture(.disk), tables = try fixture.tables()
            let row = try fixture.password("a")
            _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            var old = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
            var limit = rlimit(rlim_cur: 64 << 10, rlim_max: old.rlim_max)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
            let large = try fixture.password("large", secret: Array(repeating: 7, count: 200_000))
            for _ in 0..<3 {
                #expect(
                    keychainCode { try tables.write { (w) throws(KeychainError) in _ = try w.insert(large) } }
                        == .diskFull)
            }
            #expect(try StorageFixture.all(tables).map(\.header) == [row.header])
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old)
            _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(large) }
            #expect(try StorageFixture.all(tables).count == 2)
            #expect(try fixture.store().condition().damagedDatabases == [])
        }
    }

    @Test(
        .enabled(if: MountedImage.unavailable == nil, "\(MountedImage.unavailable ?? "")"),
        arguments: MountedImage.Kind.allCases)
    func onAFullDiskNothingChangesAndLaterAllWorks(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 16 << 20), fixture = try StorageFixture()
        let file = DatabaseFile(
            path: image.path.appending("keychain/keychain.sqlite"), system: LinuxSystemCalls.shared,
            clock: fixture.clock)
        let store = try KeychainStore.open(file, keys: fixture.keybag)
        var rows: [ItemRow] = []
        for index in 0..<20 {
            let row = try fixture.password("\(index)")
            _ = try store.tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            rows.append(row)
        }
        try image.fill()
        let large = try fixture.password("large", secret: Array(repeating: 7, count: 500_000))
        let first = rows[0]
        for _ in 0..<3 {
            #expect(
                keychainCode { try store.tables.write { (w) throws(KeychainError) in _ = try w.insert(large) } }
                    == .diskFull)
        }
        #expect(try StorageFixture.all(store.tables).map(\.header) == rows.map(\.header))
        try LinuxSystemCalls.shared.unlink(image.path.appending("filler"), in: currentDirectory)
        _ = try store.tables.write { (writer) throws(KeychainError) in try writer.insert(large) }
        #expect(try StorageFixture.all(store.tables).count == 21)
        #expect(try fixture.protection.attributes(of: first).count == 3)
    }

    @Test(
        .enabled(if: MountedImage.unavailable == nil, "\(MountedImage.unavailable ?? "")"),
        arguments: MountedImage.Kind.allCases)
    func onADiskThatCannotBeWrittenItemsAreRead(kind: MountedImage.Kind) throws {
        let image = try MountedImage(kind, size: 16 << 20), fixture = try StorageFixture()
        let file = DatabaseFile(
            path: image.path.appending("keychain/keychain.sqlite"), system: LinuxSystemCalls.shared,
            clock: fixture.clock)
        let row = try fixture.password("a"), other = try fixture.password("b")
        do {
            let store = try KeychainStore.open(file, keys: fixture.keybag)
            _ = try store.tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
        }
        try image.remount(readOnly: true)
        let store = try KeychainStore.open(file, keys: fixture.keybag)
        #expect(try StorageFixture.all(store.tables).map(\.header) == [row.header])
        #expect(
            keychainCode { try store.tables.write { (w) throws(KeychainError) in _ = try w.insert(other) } }
                == .readOnly)
        try image.remount(readOnly: false)
        _ = try store.tables.write { (writer) throws(KeychainError) in try writer.insert(other) }
        #expect(try StorageFixture.all(store.tables).count == 2)
    }
}

extension String {
    fileprivate func padded(_ count: Int) -> [UInt8] {
        Array(repeating: 0, count: max(0, count - utf8.count)) + Array(utf8.suffix(count))
    }
}
