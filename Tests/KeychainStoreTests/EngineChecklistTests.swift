import KeychainModel
import KeychainStore
import Testing

/// Rows of the checklist of Apple's own tests, by their numbers.
@Suite struct EngineChecklistTests {
    private let keychain = EngineFixture()

    @Test func emptyKeychainFindsNothing() {
        #expect(keychain.find(.generic(["r_Data": true])).code == .itemNotFound, "29")
    }

    @Test func itemsAreAddedOnce() {
        let item = ItemDictionary.internet([
            "acct": "anna", "srvr": "www.example.com", "ptcl": "htps", "port": 443, "path": "/",
            "v_Data": secret("one"),
        ])
        #expect(keychain.add(item).count == 1)
        #expect(keychain.add(item).code == .duplicateItem, "41")
        let found = keychain.find(item.without("v_Data").with(["r_Attributes": true])).results.first?.attributes
        #expect(found?["srvr"] != nil, "42")
        let again = keychain.find((found ?? [:]).with(["class": "inet", "r_Data": true])).results.first?.secret
        #expect(again?.textForTests == "one", "43")
    }

    @Test func lockIsCheckedBeforeUniqueness() {
        let item = ItemDictionary.generic(["acct": "anna", "v_Data": secret("one")])
        keychain.lock.lock()
        #expect(keychain.add(item).code == .locked, "89")
        keychain.lock.unlock()
        #expect(keychain.add(item).count == 1, "90")
        keychain.lock.lock()
        #expect(keychain.add(item).code == .locked, "91")
        #expect(keychain.find(.generic(["r_Attributes": true])).code == .locked, "93")
        #expect(keychain.find(.generic(["r_Data": true])).code == .locked, "93")
        #expect(keychain.find(.generic()).code == .locked)
        keychain.lock.unlock()
        #expect(keychain.add(item).code == .duplicateItem, "92")
    }
}
