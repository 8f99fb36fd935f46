import Security
import Testing

/// What went wrong for users of other keychains and of wrappers around them.
@Suite struct FieldReportTests {
    @Test func aChangeOfAccessibilityHidesAnItemFromQueriesForTheOldOneOnly() throws {
        let home = MemoryHome()
        try home.calling {
            for item in Checklist.both {
                #expect(add(item, secret("token") + [kSecAttrAccessible: kSecAttrAccessibleWhenUnlocked]) == 0)
                for before in Checklist.accessibilities {
                    for after in Checklist.accessibilities {
                        #expect(update(item, [kSecAttrAccessible: before]) == 0)
                        #expect(find(item + [kSecAttrAccessible: before], returnData).text == "token")
                        #expect(update(item + [kSecAttrAccessible: before], [kSecAttrAccessible: after]) == 0)
                        #expect(find(item, returnData).text == "token")
                        #expect(find(item + [kSecAttrAccessible: after], returnData).text == "token")
                        guard before != after else { continue }
                        let old = item + [kSecAttrAccessible: before]
                        #expect(find(old, returnData).status == errSecItemNotFound)
                        #expect(update(old, secret("other")) == errSecItemNotFound)
                        #expect(delete(old) == errSecItemNotFound)
                    }
                }
                #expect(delete(item) == 0)
            }
        }
    }

    @Test(arguments: [0, 1, 2, 50])
    func allItemsWithTheirDataAreAnArrayWhateverTheirNumber(_ number: Int) throws {
        let home = MemoryHome()
        try home.calling {
            for index in 0..<number {
                #expect(add(generic("\(index)"), secret("\(index)")) == 0)
                #expect(add(internet("\(index)"), secret("\(index)")) == 0)
            }
            for itemClass in [kSecClassGenericPassword, kSecClassInternetPassword] {
                let found = find([kSecClass: itemClass] + returnData + limitAll)
                guard number > 0 else {
                    #expect(found.status == errSecItemNotFound)
                    #expect(found.object == nil)
                    continue
                }
                #expect(found.status == errSecSuccess)
                let data = try #require(found.object as? [Data])
                #expect(Set(data) == Set((0..<number).map { Data("\($0)".utf8) }))
                #expect(data.count == number)
            }
        }
    }

    @Test func synchronizableItemsAndOthersAreTwoKindsOfTheSameName() throws {
        let home = MemoryHome()
        try home.calling {
            for item in Checklist.both {
                func asking(_ value: Any?) -> Attributes { value.map { item + [kSecAttrSynchronizable: $0] } ?? item }
                #expect(add(asking(nil), secret("local")) == 0)
                #expect(add(asking(true), secret("synced")) == 0)
                #expect(add(asking(nil), secret("x")) == errSecDuplicateItem)
                #expect(add(asking(false), secret("x")) == errSecDuplicateItem)
                #expect(add(asking(true), secret("x")) == errSecDuplicateItem)
                #expect(add(asking(kSecAttrSynchronizableAny), secret("x")) == errSecParam)
                func texts(_ value: Any?) -> Set<String> {
                    let data = find(asking(value), returnData + limitAll).object as? [Data]
                    return Set((data ?? []).map { String(decoding: $0, as: UTF8.self) })
                }
                #expect(texts(nil) == ["local"])
                #expect(texts(false) == ["local"])
                #expect(texts(0) == ["local"])
                #expect(texts(true) == ["synced"])
                #expect(texts(1) == ["synced"])
                #expect(texts(kSecAttrSynchronizableAny) == ["local", "synced"])
                #expect(delete(asking(nil)) == 0)
                #expect(texts(kSecAttrSynchronizableAny) == ["synced"])
                #expect(delete(asking(false)) == errSecItemNotFound)
                #expect(delete(asking(kSecAttrSynchronizableAny)) == 0)
                #expect(texts(kSecAttrSynchronizableAny).isEmpty)
            }
        }
    }

    /// Before the first unlock an app that takes "not allowed" for "not found" logs its user out, or makes a second secret.
    @Test func beforeTheFirstUnlockWhatIsThereIsNotAllowedAndWhatIsNotThereIsNotFound() throws {
        let home = MemoryHome()
        try home.calling {
            for accessibility in Checklist.accessibilities {
                for item in Checklist.both.map({ $0 + [kSecAttrLabel: accessibility] }) {
                    let named = item + [kSecAttrAccount: accessibility]
                    #expect(add(named, secret("token") + [kSecAttrAccessible: accessibility]) == 0)
                }
            }
            home.restart()
            for accessibility in Checklist.accessibilities {
                let isReadable = ["dk", "dku"].contains(accessibility as String)
                let locked: OSStatus = isReadable ? errSecSuccess : errSecInteractionNotAllowed
                for item in Checklist.both.map({ $0 + [kSecAttrAccount: accessibility] }) {
                    let absent = item + [kSecAttrAccount: "absent"]
                    let accessible: Attributes = [kSecAttrAccessible: accessibility]
                    #expect(find(item, returnData).status == locked, "\(accessibility)")
                    #expect(find(item, returnAttributes).status == locked, "\(accessibility)")
                    #expect(update(item, secret("other")) == locked, "\(accessibility)")
                    #expect(find(absent, returnData).status == errSecItemNotFound)
                    #expect(update(absent, secret("other")) == errSecItemNotFound)
                    #expect(delete(absent) == errSecItemNotFound)
                    let added = add(item, secret("second") + accessible)
                    #expect(added == (isReadable ? errSecDuplicateItem : errSecInteractionNotAllowed))
                    // Get or create, as apps do it: no second secret comes of it.
                    if find(item, returnData).status == errSecItemNotFound {
                        Issue.record("what is there was not found")
                    }
                }
            }
            home.unlock()
            for accessibility in Checklist.accessibilities {
                let isReadable = ["dk", "dku"].contains(accessibility as String)
                for item in Checklist.both.map({ $0 + [kSecAttrAccount: accessibility] }) {
                    #expect(find(item, returnData).text == (isReadable ? "other" : "token"))
                }
            }
            #expect(count(kSecClassGenericPassword) == 7)
        }
    }
}
