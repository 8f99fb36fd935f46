import Cryptography
import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

@Suite struct SealedProtectionTests {
    static let attributes: ItemDictionary = [
        "acct": .text("account"), "svce": .text("service"), "labl": .text("label"), "icmt": .data([1, 2]),
    ]

    @Test(arguments: [0, 1, 2, 59, 60, 61, 1000, ItemSecret.maximumCount - 1, ItemSecret.maximumCount])
    func aSecretOfAnySizeComesBack(size: Int) throws {
        let fixture = try StorageFixture()
        var random = DeterministicRandom(seed: UInt64(size))
        let secret = random.bytes(size)
        let row = try fixture.row(Self.attributes, secret: secret)
        #expect(try fixture.protection.secret(of: row)?.revealed == secret)
        guard case .sealed(_, let sealed?) = row.content else {
            Issue.record("not sealed")
            return
        }
        // Version, pair number, wrapped key, seal; then the size shows in steps only.
        #expect((sealed.count - 1 - 16 - 40 - 40) % SealedProtection.paddingStep == 0)
    }

    @Test func noSecretIsNotAnEmptyOne() throws {
        let fixture = try StorageFixture()
        #expect(try fixture.protection.secret(of: fixture.row(Self.attributes, secret: nil)) == nil)
        #expect(try fixture.protection.secret(of: fixture.row(Self.attributes, secret: []))?.count == 0)
    }

    @Test func theSameItemIsSealedToOtherBytesEachTime() throws {
        let fixture = try StorageFixture()
        var seen = Set<[UInt8]>()
        for _ in 0..<10 {
            let content = try fixture.row(Self.attributes, secret: [1]).content
            guard case .sealed(let metadata, let secret?) = content else {
                Issue.record("not sealed")
                return
            }
            #expect(seen.insert(metadata).inserted && seen.insert(secret).inserted)
        }
    }

    /// Apple's checklist 132: header, digests and both halves, each byte of them.
    @Test func everyChangedByteOfARowMakesItUndecodable() throws {
        let fixture = try StorageFixture()
        let row = try fixture.row(Self.attributes, secret: [1, 2, 3], .afterFirstUnlock)
        func isRefused(_ row: ItemRow, secretOnly: Bool = false) -> Bool {
            let secret = keychainCode { try fixture.protection.secret(of: row) }
            let attributes = keychainCode { try fixture.protection.attributes(of: row) }
            // The attributes are opened without a look at the secret (131).
            return secretOnly ? secret == .undecodable : attributes == .undecodable
        }
        guard case .sealed(let metadata, let secret?) = row.content else {
            Issue.record("not sealed")
            return
        }
        for place in metadata.indices {
            for bit in 0..<8 {
                var changed = row, bytes = metadata
                bytes[place] ^= 1 << bit
                changed.content = .sealed(metadata: bytes, secret: secret)
                #expect(isRefused(changed) && isRefused(changed, secretOnly: true), "metadata \(place)")
            }
        }
        for place in secret.indices {
            for bit in 0..<8 {
                var changed = row, bytes = secret
                bytes[place] ^= 1 << bit
                changed.content = .sealed(metadata: metadata, secret: bytes)
                #expect(isRefused(changed, secretOnly: true), "secret \(place)")
            }
        }
        for shorter in [metadata.dropLast(), metadata.dropFirst(), metadata.prefix(0), metadata.prefix(56)] {
            var changed = row
            changed.content = .sealed(metadata: Array(shorter), secret: secret)
            #expect(isRefused(changed))
        }
        for count in 0..<secret.count {
            var changed = row
            changed.content = .sealed(metadata: metadata, secret: Array(secret.prefix(count)))
            #expect(isRefused(changed, secretOnly: true))
        }
        var withoutSecret = row
        withoutSecret.content = .sealed(metadata: metadata, secret: nil)
        #expect(isRefused(withoutSecret) && isRefused(withoutSecret, secretOnly: true))
    }

    @Test func everyChangedByteOfARowsHeaderMakesItUndecodable() throws {
        let fixture = try StorageFixture()
        let row = try fixture.row(Self.attributes, secret: [1], .afterFirstUnlock)
        func expectRefused(_ name: String, _ change: (inout ItemRow) -> Void) {
            var changed = row
            change(&changed)
            #expect(keychainCode { try fixture.protection.attributes(of: changed) } == .undecodable, "\(name)")
            #expect(keychainCode { try fixture.protection.secret(of: changed) } == .undecodable, "\(name)")
        }
        for place in 0..<16 {
            for bit in 0..<8 {
                expectRefused("identifier") { row in
                    var identifier = row.header.identifier
                    identifier[place] ^= 1 << bit
                    row.header = ItemHeader(row.header, identifier: identifier)
                }
                expectRefused("primary key") { row in
                    var bytes = row.primaryKey.bytes
                    bytes[place] ^= 1 << bit
                    row.primaryKey = LookupDigest(bytes)
                }
                for attribute in ["acct", "svce", "labl"] {
                    expectRefused(attribute) { row in
                        var bytes = row.digests[attribute]?.bytes ?? []
                        bytes[place] ^= 1 << bit
                        row.digests[attribute] = LookupDigest(bytes)
                    }
                }
            }
        }
        for attribute in ["acct", "svce", "labl"] { expectRefused(attribute) { $0.digests[attribute] = nil } }
        expectRefused("a digest too many") { $0.digests["gena"] = LookupDigest(high: 1, low: 1) }
        for group in ["", "grouq", "group ", "Group", "group\0"] {
            expectRefused(group) { $0.header.accessGroup = group }
        }
        expectRefused("sync") { $0.header.isSynchronizable = true }
        expectRefused("tombstone") { $0.header.isTombstone = true }
        for accessibility in Accessibility.allCases where accessibility != .afterFirstUnlock {
            expectRefused("\(accessibility)") { $0.header.accessibility = accessibility }
        }
        for generation in 0...255 as ClosedRange<UInt8> where generation != row.header.generation {
            expectRefused("\(generation)") { $0.header.generation = generation }
        }
        expectRefused("class") { $0.header = ItemHeader($0.header, itemClass: .internetPassword) }
    }

    @Test func halvesOfOtherRowsAndOtherVersionsDoNotOpen() throws {
        let fixture = try StorageFixture()
        let row = try fixture.row(Self.attributes, secret: [1])
        var again = row
        again.content = try fixture.protection.seal(Self.attributes, try itemSecret([1]), &again.header)
        let other = try fixture.row(Self.attributes, secret: [1])
        for stranger in [again, other] {
            guard case .sealed(let metadata, let secret) = row.content,
                case .sealed(let otherMetadata, let otherSecret) = stranger.content
            else {
                Issue.record("not sealed")
                return
            }
            var mixed = row
            mixed.content = .sealed(metadata: metadata, secret: otherSecret)
            #expect(keychainCode { try fixture.protection.secret(of: mixed) } == .undecodable)
            mixed.content = .sealed(metadata: otherMetadata, secret: secret)
            #expect(keychainCode { try fixture.protection.secret(of: mixed) } == .undecodable)
        }
    }

    @Test func anAttributeQueryOpensNoSecret() throws {
        let fixture = try StorageFixture()
        var row = try fixture.row(Self.attributes, secret: [1])
        guard case .sealed(let metadata, _) = row.content else { return }
        row.content = .sealed(metadata: metadata, secret: [])
        #expect(try fixture.protection.attributes(of: row).count == Self.attributes.count)
    }

    @Test func digestsTellValuesClassesAndKindsApart() throws {
        let fixture = try StorageFixture(), other = try StorageFixture(), protection = fixture.protection
        func digest(_ value: ItemValue, _ name: String = "acct", _ itemClass: ItemClass = .genericPassword) throws
            -> LookupDigest
        {
            try protection.digest(of: value, name, itemClass)
        }
        #expect(try digest(.text("a")) == digest(.text("a")))
        #expect(try digest(.number(1)) == digest(.boolean(true)) && digest(.real(1)) == digest(.number(1)))
        let all = [
            try digest(.text("a")), try digest(.data([0x61])), try digest(.text("b")), try digest(.text("a"), "svce"),
            try digest(.text("a"), "acct", .internetPassword), try digest(.text("")), try digest(.data([])),
            try digest(.number(1)), try digest(.number(0)), try digest(.real(1.5)),
            try other.protection.digest(of: .text("a"), "acct", .genericPassword),
            try protection.primaryKeyDigest(
                of: [.text("a"), .text("b")], .genericPassword, accessGroup: "g", isSynchronizable: false),
            try protection.primaryKeyDigest(
                of: [.text("a"), .text("b")], .genericPassword, accessGroup: "g", isSynchronizable: true),
            try protection.primaryKeyDigest(
                of: [.text("a"), .text("b")], .genericPassword, accessGroup: "h", isSynchronizable: false),
            try protection.primaryKeyDigest(
                of: [.text("ab"), .text("")], .genericPassword, accessGroup: "g", isSynchronizable: false),
        ]
        #expect(Set(all).count == all.count)
    }

    // MARK: Lock states

    @Test func eachAccessibilityOpensInItsLockStates() throws {
        let fixture = try StorageFixture()
        let rows = try Accessibility.allCases.map { try fixture.row(Self.attributes, secret: [1], $0) }
        func codes(_ protection: SealedProtection) -> [Accessibility: [KeychainError.Code?]] {
            Dictionary(
                uniqueKeysWithValues: rows.map { row in
                    (
                        row.header.accessibility,
                        [
                            keychainCode { try protection.attributes(of: row) },
                            keychainCode { try protection.secret(of: row) },
                            keychainCode { try protection.requireSealing(row.header.accessibility) },
                        ]
                    )
                })
        }
        func expect(_ found: [Accessibility: [KeychainError.Code?]], locked: Set<Accessibility>, _ state: String) {
            for (accessibility, codes) in found {
                let expected: KeychainError.Code? = locked.contains(accessibility) ? .locked : nil
                #expect(codes == [expected, expected, expected], "\(state) \(accessibility)")
            }
        }
        expect(codes(fixture.protection), locked: [], "unlocked")
        try fixture.lock()
        let whenUnlocked = Set(Accessibility.allCases.filter(\.needsUnlocked))
        expect(codes(fixture.protection), locked: whenUnlocked, "locked")
        let fresh = SealedProtection(keys: try Keybag.open(fixture.home, clock: fixture.clock))
        expect(
            codes(fresh),
            locked: whenUnlocked.union([.afterFirstUnlock, .afterFirstUnlockThisDeviceOnly]), "before first unlock")
        // Digests are there in every lock state, and the same.
        #expect(
            try fresh.digest(of: .text("account"), "acct", .genericPassword) == rows[0].digests["acct"])
    }

    @Test func removingThePasscodeDestroysWhatNeedsOne() throws {
        let fixture = try StorageFixture()
        let row = try fixture.row(Self.attributes, secret: [1], .whenPasscodeSetThisDeviceOnly)
        let kept = try fixture.row(Self.attributes, secret: [1], .whenUnlockedThisDeviceOnly)
        let passcode = try StorageFixture.secret(Array(StorageFixture.passcode.utf8))
        try fixture.keybag.removePasscode(passcode)
        #expect(!fixture.keybag.hasPasscode)
        #expect(keychainCode { try fixture.protection.attributes(of: row) } == .undecodable)
        #expect(try fixture.protection.attributes(of: kept).count == Self.attributes.count)
        #expect(
            keychainCode { try fixture.protection.requireSealing(.whenPasscodeSetThisDeviceOnly) } == .notAvailable)
        let without = try StorageFixture(passcode: nil)
        #expect(
            keychainCode { try without.protection.requireSealing(.whenPasscodeSetThisDeviceOnly) } == .notAvailable)
        #expect(try without.row(Self.attributes, secret: [1]).header.accessibility == .whenUnlocked)
    }

    @Test func oldGenerationsOpenUntilTheyArePruned() throws {
        let fixture = try StorageFixture()
        for accessibility in Accessibility.allCases {
            let keyClass = KeyClass(accessibility)
            #expect(keyClass.rawValue == accessibility.number)
            let old = try fixture.row(Self.attributes, secret: [1], accessibility)
            try fixture.keybag.rotate([keyClass])
            let new = try fixture.row(Self.attributes, secret: [2], accessibility)
            #expect(new.header.generation == old.header.generation + 1)
            #expect(try fixture.protection.secret(of: old)?.revealed == [1])
            try fixture.keybag.prune(keyClass, below: new.header.generation)
            #expect(keychainCode { try fixture.protection.attributes(of: old) } == .undecodable)
            #expect(try fixture.protection.secret(of: new)?.revealed == [2])
        }
    }

    @Test func aKeyThatAnotherProcessMadeIsFound() throws {
        let fixture = try StorageFixture()
        let other = try Keybag.open(fixture.home, clock: fixture.clock)
        try other.unlock(passcode: try StorageFixture.secret(Array(StorageFixture.passcode.utf8)))
        try fixture.keybag.rotate()
        for accessibility in Accessibility.allCases {
            let row = try fixture.row(Self.attributes, secret: [1], accessibility)
            #expect(try SealedProtection(keys: other).secret(of: row)?.revealed == [1])
        }
    }

    @Test func aLockWaitsForWhoeverUsesTheKeys() throws {
        let fixture = try StorageFixture()
        let keybag = fixture.keybag
        let order = Mutex<[String]>([])
        let isInside = Atomic<Bool>(false), isLocking = Atomic<Bool>(false)
        WorkerThreads.run(2) { thread in
            if thread == 0 {
                try? keybag.withItemKeys(of: .whenUnlocked, generation: nil) { keys in
                    isInside.store(true, ordering: .sequentiallyConsistent)
                    while !isLocking.load(ordering: .sequentiallyConsistent) { sched_yield() }
                    // Time enough for a lock that does not wait.
                    for _ in 0..<10_000 { sched_yield() }
                    order.withLock { $0.append(keys.metadata.isAllZero ? "zeros" : "key") }
                }
            } else {
                while !isInside.load(ordering: .sequentiallyConsistent) { sched_yield() }
                isLocking.store(true, ordering: .sequentiallyConsistent)
                _ = try? keybag.lock(reason: .command)
                order.withLock { $0.append("locked") }
            }
        }
        #expect(order.withLock { $0 } == ["key", "locked"])
    }

    // MARK: Memory

    @Test func afterALockNoSecretAndNoKeyIsInMemory() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let fixture = try StorageFixture()
            let plain = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: plain)
            var row: ItemRow?
            do {
                let secret = ItemSecret(try plain.copy())
                var header = ItemHeader(
                    itemClass: .genericPassword, identifier: try RandomBytes.bytes(16), accessGroup: "g",
                    isSynchronizable: false, accessibility: .whenUnlocked)
                let content = try fixture.protection.seal(SealedProtectionTests.attributes, secret, &header)
                let digests = try fixture.protection.digests(of: SealedProtectionTests.attributes, header)
                row = ItemRow(
                    header: header, primaryKey: digests.primaryKey, digests: digests.digests, content: content)
            }
            let sealed = try #require(row)
            var scans: [(String, MemoryScan)] = []
            try fixture.keybag.withItemKeys(of: .whenUnlocked, generation: nil) { (keys) throws(KeychainError) in
                scans = [
                    ("metadata key", MemoryScan(for: keys.metadata)),
                    ("wrapping key", MemoryScan(for: keys.secretWrapping)),
                ]
                for (name, scan) in scans { #expect((try? scan.copies()) == 1, "\(name): the scan is blind") }
            }
            #expect(try scan.copies() == 1)
            do {
                let opened = try #require(try fixture.protection.secret(of: sealed))
                #expect(opened.count == 32)
                #expect(try scan.copies() == 2, "the scan is blind")
            }
            #expect(try scan.copies() == 1)
            _ = consume plain
            try fixture.lock()
            #expect(keychainCode { try fixture.protection.secret(of: sealed) } == .locked)
            #expect(try scan.copies() == 0)
            for (name, scan) in scans { #expect(try scan.copies() == 0, "\(name) is still there") }
        }
    }
}

extension ItemHeader {
    /// A copy that differs in what cannot be changed.
    init(_ other: ItemHeader, itemClass: ItemClass? = nil, identifier: [UInt8]? = nil) {
        self.init(
            itemClass: itemClass ?? other.itemClass, identifier: identifier ?? other.identifier,
            accessGroup: other.accessGroup, isSynchronizable: other.isSynchronizable, isTombstone: other.isTombstone,
            accessibility: other.accessibility, generation: other.generation)
    }
}
