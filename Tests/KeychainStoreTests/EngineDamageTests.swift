import KeychainModel
import KeychainStore
import Synchronization
import Testing

/// Items that do not decode: they count as absent, are kept aside, and stand in nobody's way (checklist 95 to 98).
@Suite struct EngineDamageTests {
    /// Items in memory, of which some stop to decode.
    private final class Garbling: ItemProtection {
        private let inner = OpenProtection(SimulatedLock())
        private let garbled = Mutex<Set<[UInt8]>>([])
        private let isSecretOnly: Bool

        init(secretOnly: Bool) { isSecretOnly = secretOnly }

        func garble(_ reference: PersistentReference) { garbled.withLock { _ = $0.insert(reference.identifier) } }

        private func check(_ row: ItemRow) throws(KeychainError) {
            guard garbled.withLock({ !$0.contains(row.header.identifier) }) else {
                throw KeychainError(.undecodable, "garbled")
            }
        }

        func digest(
            of value: ItemValue, _ attribute: String, _ itemClass: ItemClass
        ) throws(KeychainError) -> LookupDigest { try inner.digest(of: value, attribute, itemClass) }

        func primaryKeyDigest(
            of values: [ItemValue], _ itemClass: ItemClass, accessGroup: String, isSynchronizable: Bool
        ) throws(KeychainError) -> LookupDigest {
            try inner.primaryKeyDigest(
                of: values, itemClass, accessGroup: accessGroup, isSynchronizable: isSynchronizable)
        }

        func requireSealing(_ accessibility: Accessibility) throws(KeychainError) {
            try inner.requireSealing(accessibility)
        }

        func seal(
            _ attributes: ItemDictionary, _ secret: ItemSecret?, _ header: inout ItemHeader
        ) throws(KeychainError) -> ItemContent { try inner.seal(attributes, secret, &header) }

        func attributes(of row: ItemRow) throws(KeychainError) -> ItemDictionary {
            if !isSecretOnly { try check(row) }
            return try inner.attributes(of: row)
        }

        func secret(of row: ItemRow) throws(KeychainError) -> ItemSecret? {
            try check(row)
            return try inner.secret(of: row)
        }
    }

    private struct Scene {
        let protection: Garbling
        let tables = MemoryTables()
        let keychain: EngineFixture
        let anna = ItemDictionary.generic(["acct": "anna", "v_Data": secret("one")])
        let bertha = ItemDictionary.generic(["acct": "bertha", "v_Data": secret("one")])

        init(secretOnly: Bool = false) throws {
            protection = Garbling(secretOnly: secretOnly)
            keychain = EngineFixture(KeychainStore(tables: tables, protection: protection), SimulatedLock())
            #expect(keychain.add(bertha).count == 1)
            let added = keychain.add(anna.with(["r_PersistentRef": true]))
            protection.garble(try #require(added.results.first?.reference))
        }
    }

    @Test(arguments: [["r_Attributes"], ["r_Data"], ["r_Data", "r_Attributes"], []], [false, true])
    func aQueryMeetsIt(_ parts: [String], _ secretOnly: Bool) throws {
        let scene = try Scene(secretOnly: secretOnly)
        let query = scene.anna.with(ItemDictionary(uniqueKeysWithValues: parts.map { ($0, true) }))
        let meetsIt = !secretOnly || parts.contains("r_Data")
        #expect(scene.keychain.find(query).code == (meetsIt ? .itemNotFound : nil), "95")
        #expect(scene.tables.setAsideCount == (meetsIt ? 1 : 0), "95: kept, not deleted")
        let all = scene.keychain.find(query.without("acct").with(["m_Limit": "m_LimitAll"]))
        #expect(all.count == (meetsIt ? 1 : 2), "others are found")
        #expect(scene.keychain.add(scene.anna).count == 1, "96")
        #expect(scene.tables.setAsideCount == 1)
        #expect(scene.keychain.find(scene.anna.with(["r_Data": true])).count == 1)
    }

    @Test(arguments: [false, true]) func addingReplacesIt(_ secretOnly: Bool) throws {
        let scene = try Scene(secretOnly: secretOnly)
        #expect(scene.keychain.add(scene.bertha).code == .duplicateItem)
        #expect(scene.keychain.add(scene.anna).count == 1, "96")
        #expect(scene.tables.setAsideCount == 1)
        #expect(scene.keychain.find(scene.anna).count == 1)
    }

    @Test(arguments: [false, true]) func anUpdateMovesOntoItsKey(_ secretOnly: Bool) throws {
        let scene = try Scene(secretOnly: secretOnly)
        #expect(scene.keychain.update(scene.bertha, to: ["acct": "anna"]).count == 1, "97")
        #expect(scene.tables.setAsideCount == 1)
        #expect(scene.keychain.find(scene.anna.with(["r_Data": true])).count == 1)
        #expect(scene.keychain.find(scene.bertha).code == .itemNotFound)
    }

    @Test func anUpdateOfItFindsNothing() throws {
        let scene = try Scene()
        #expect(scene.keychain.update(scene.anna, to: ["icmt": "new"]).code == .itemNotFound, "98")
        #expect(scene.tables.setAsideCount == 1, "98: set aside although nothing was updated")
        #expect(scene.keychain.delete(scene.anna).code == .itemNotFound)
    }

    @Test func aNewSecretMendsAnItemOfWhichOnlyTheSecretIsLost() throws {
        let scene = try Scene(secretOnly: true)
        #expect(scene.keychain.update(scene.anna, to: ["v_Data": secret("two")]).count == 1)
        #expect(
            scene.keychain.update(scene.anna, to: ["icmt": "new"]).code == .itemNotFound, "still garbled in this test")
    }

    @Test func deletingAndPurgingTakeItToo() throws {
        let scene = try Scene()
        #expect(scene.keychain.delete(scene.anna).count == 1, "nothing has to be opened")
        #expect(scene.tables.setAsideCount == 0)
        let other = try Scene()
        #expect(other.keychain.find(other.anna).code == .itemNotFound)
        #expect(other.tables.setAsideCount == 1)
        let purge = KeychainRequest.purge(accessGroup: "org.example.app")
        #expect(other.keychain.ask(purge, as: EngineFixture.administrator).count == 2)
        #expect(other.tables.setAsideCount == 0)
    }
}
