import KeychainModel
import KeychainStore
import Testing

/// Rows of the checklist of Apple's own tests, by their numbers, as far as they concern passwords and the engine.
@Suite struct EngineChecklistTests {
    private static let anna: ItemDictionary = .generic(["acct": "anna", "svce": "mail", "v_Data": secret("one")])
    private static let all: ItemDictionary = ["m_Limit": "m_LimitAll"]

    @Test(arguments: EngineHome.all) func itemsAreAddedOnceAndFound(_ home: EngineHome) throws {
        let keychain = try home.make()
        #expect(keychain.find(.generic(["r_Data": true])).code == .itemNotFound, "29")
        let item = ItemDictionary.internet([
            "acct": "anna", "srvr": "www.example.com", "ptcl": "htps", "port": 443, "path": "/",
            "v_Data": secret("one"),
        ])
        let added = keychain.add(item)
        #expect(added.count == 1 && added.results.isEmpty, "33: nothing was asked for")
        #expect(keychain.add(item).code == .duplicateItem, "41")
        let found = try #require(
            keychain.find(item.with(["r_Attributes": true])).results.first?.attributes, "42")
        #expect(!found.keys.contains { $0.hasPrefix("v_") || $0 == "class" || $0 == "sha1" || $0 == "tomb" })
        let again = keychain.find(found.with(["class": "inet", "r_Data": true])).results
        #expect(again.first?.secret?.textForTests == "one", "43")
        #expect(keychain.update(item.without("v_Data"), to: ["srvr": "mail.example.com"]).count == 1, "44")
        #expect(keychain.update(item.without("v_Data"), to: ["srvr": "mail.example.com"]).code == .itemNotFound, "44")
        #expect(keychain.delete(.internet(["srvr": "www.example.com"])).code == .itemNotFound, "45")
        #expect(keychain.add(item).count == 1)
        #expect(
            keychain.update(item.without("v_Data"), to: ["srvr": "mail.example.com"]).code == .duplicateItem, "46")
        #expect(keychain.delete(.internet(["srvr": "mail.example.com"])).count == 1, "47")
        #expect(keychain.delete(item).count == 1, "32")
        #expect(keychain.add(item).count == 1, "32")
    }

    @Test(arguments: EngineHome.all) func theSecretIsUpdated(_ home: EngineHome) throws {
        let keychain = try home.make()
        #expect(keychain.add(Self.anna).count == 1)
        let query = Self.anna.without("v_Data")
        #expect(keychain.update(query, to: ["v_Data": secret("two")]).count == 1)
        #expect(keychain.find(query.with(["r_Data": true])).results.first?.secret?.textForTests == "two", "48")
        #expect(keychain.update(query, to: ["v_Data": .null]).code == .malformed, "49")
        #expect(keychain.update(query, to: ["v_Data": "three"]).code == .malformed, "50")
        #expect(keychain.find(query.with(["r_Data": true])).results.first?.secret?.textForTests == "two")
    }

    @Test(arguments: EngineHome.all, ["genp", "inet"]) func tombstonesStay(
        _ home: EngineHome, itemClass: String
    ) throws {
        let keychain = try home.make()
        let base: ItemDictionary = ["class": .text(itemClass), "acct": "anna"]
        let synced = base.with(["sync": true])
        #expect(keychain.add(synced).count == 1)
        #expect(keychain.delete(synced).count == 1)
        #expect(keychain.find(synced).code == .itemNotFound, "51")
        #expect(keychain.find(synced.with(["tomb": true, "r_Attributes": true])).results.count == 1, "51")
        #expect(keychain.add(synced).count == 1, "52")
        #expect(keychain.find(synced.with(["tomb": true])).code == .itemNotFound, "52")
        #expect(keychain.delete(synced.with(["u_Tomb": false])).count == 1)
        #expect(keychain.find(synced.with(["tomb": true])).code == .itemNotFound, "53")
        #expect(keychain.add(base).count == 1)
        #expect(keychain.delete(base).count == 1)
        #expect(keychain.find(base.with(["tomb": true])).code == .itemNotFound, "54")
        #expect(keychain.add(base).count == 1)
        #expect(keychain.delete(base.with(["u_Tomb": true])).count == 1)
        #expect(keychain.find(base.with(["tomb": 1])).count == 1, "54")
        #expect(keychain.delete(base.with(["tomb": 1])).count == 1, "55")
        #expect(keychain.find(base.with(["tomb": 1])).code == .itemNotFound, "55")
    }

    @Test(arguments: EngineHome.all) func aReferenceNamesItsItem(_ home: EngineHome) throws {
        let keychain = try home.make()
        let bertha = Self.anna.with(["acct": "bertha"])
        let added = keychain.add(Self.anna.with(["r_PersistentRef": true]))
        let reference = try #require(added.results.first?.reference, "60")
        #expect(reference.bytes.count == 20, "129")
        #expect(keychain.add(bertha).count == 1)
        let named: ItemDictionary = ["v_PersistentRef": .data(reference.bytes)]
        let byReference = keychain.find(named.with(["r_Attributes": true])).results.first?.attributes
        let byAttributes = keychain.find(Self.anna.with(["r_Attributes": true])).results.first?.attributes
        #expect(byReference?.count == byAttributes?.count && byReference?["acct"] != nil, "60")
        #expect(keychain.update(named, to: ["v_Data": secret("two"), "icmt": "new"]).count == 1, "62")
        #expect(keychain.find(named.with(["r_Data": true])).results.first?.secret?.textForTests == "two", "63")
        #expect(keychain.find(bertha.with(["r_Data": true])).results.first?.secret?.textForTests == "one", "62")
        #expect(keychain.find(named.with(["acct": "anna"])).code == .malformed, "3.11")
        #expect(keychain.delete(named).count == 1, "64")
        #expect(keychain.find(named).code == .itemNotFound, "61")
        #expect(keychain.find(Self.anna).code == .itemNotFound, "61")
        #expect(keychain.delete(named).code == .itemNotFound, "64")
        #expect(keychain.find(bertha).count == 1, "64")
    }

    @Test(arguments: EngineHome.all) func synchronizableItemsAreAKindOfTheirOwn(_ home: EngineHome) throws {
        let keychain = try home.make()
        let synced = Self.anna.with(["sync": true, "icmt": "old"])
        #expect(keychain.add(synced).count == 1)
        #expect(keychain.find(Self.anna).code == .itemNotFound, "83")
        #expect(keychain.find(synced.without("icmt")).count == 1, "83")
        #expect(keychain.find(Self.anna.with(["sync": "syna"])).count == 1, "83")
        #expect(keychain.update(Self.anna, to: ["icmt": "new"]).code == .itemNotFound, "84")
        #expect(keychain.update(Self.anna.with(["sync": true]), to: ["icmt": "new"]).count == 1, "84")
        #expect(keychain.add(Self.anna).count == 1, "KC-06")
        #expect(keychain.find(Self.anna.with(["sync": "syna"]).with(Self.all)).count == 2, "KC-06")
        #expect(keychain.add(Self.anna.with(["sync": "syna"])).code == .malformed, "KC-06")
        #expect(keychain.update(Self.anna, to: ["sync": true]).code == .duplicateItem)
        #expect(keychain.update(Self.anna, to: ["sync": "syna"]).code == .malformed)
        #expect(keychain.update(Self.anna.with(["sync": true]), to: ["pdmn": "aku"]).code == .malformed, "3.4")
        #expect(keychain.delete(Self.anna.with(["sync": "syna"])).count == 2, "KC-06")
    }

    @Test(arguments: EngineHome.all) func whatIsAskedForIsReturned(_ home: EngineHome) throws {
        let keychain = try home.make()
        for name in ["anna", "bertha", "carl"] {
            #expect(keychain.add(.generic(["acct": .text(name), "v_Data": secret(name)])).count == 1)
        }
        #expect(keychain.add(.generic(["acct": "nothing"])).count == 1)
        let both = keychain.find(.generic(["r_Data": true, "r_PersistentRef": true]).with(Self.all)).results
        #expect(both.map { $0.secret?.textForTests } == ["anna", "bertha", "carl", nil], "85 86 119 KC-04")
        let empty = keychain.find(.generic(["acct": "nothing", "r_Data": true, "r_Attributes": true])).results.first
        #expect(empty?.attributes != nil && empty?.secret == nil, "87")
        #expect(keychain.find(.generic(["r_Data": true])).results.count == 1, "the first, without a limit")
        for (limit, count) in [(ItemValue.number(2), 2), (.number(0x7FFF), 4), (.number(-1), 4), ("m_LimitOne", 1)] {
            #expect(keychain.find(.generic(["m_Limit": limit])).count == count, "81 \(limit)")
        }
        let reference = keychain.find(.generic(["r_Ref": true])).results
        #expect(reference.first?.attributes == nil && reference.first?.secret == nil, "125")
        let classed = keychain.find(.generic(["r_Ref": true, "r_Attributes": true])).results.first?.attributes
        #expect(classed?["class"] != nil, "38")
    }

    @Test(arguments: EngineHome.all) func lockIsCheckedBeforeUniqueness(_ home: EngineHome) throws {
        let keychain = try home.make()
        keychain.lock.lock()
        #expect(keychain.add(Self.anna).code == .locked, "89")
        keychain.lock.unlock()
        #expect(keychain.add(Self.anna).count == 1, "90")
        keychain.lock.lock()
        #expect(keychain.add(Self.anna).code == .locked, "91")
        for parts: ItemDictionary in [["r_Attributes": true], ["r_Data": true], [:], ["r_PersistentRef": true]] {
            #expect(keychain.find(.generic(parts)).code == .locked, "93 133 134")
        }
        #expect(keychain.update(Self.anna, to: ["icmt": "new"]).code == .locked)
        #expect(keychain.find(.generic(["acct": "bertha"])).code == .itemNotFound, "KC-08: truly absent")
        #expect(keychain.find(.generic(["icmt": "new"])).code == .locked, "cannot be decided")
        #expect(
            keychain.add(Self.anna.with(["pdmn": "dk"])).code == .duplicateItem, "137 KC-08: a lock hides no duplicate")
        keychain.lock.unlock()
        #expect(keychain.add(Self.anna).code == .duplicateItem, "92")
        #expect(keychain.find(Self.anna.with(["r_Data": true])).results.first?.secret?.textForTests == "one", "133")
        keychain.lock.lock()
        #expect(keychain.delete(.generic(["acct": "anna"])).count == 1, "a locked item can be deleted")
    }

    @Test(arguments: EngineHome.all, Accessibility.allCases) func eachAccessibilityHasItsStates(
        _ home: EngineHome, accessibility: Accessibility
    ) throws {
        let keychain = try home.make()
        let item = Self.anna.with(["pdmn": .text(accessibility.rawValue)])
        let wanted = Self.anna.with(["r_Data": true, "r_Attributes": true])
        #expect(keychain.add(item).count == 1, "112")
        let found = keychain.find(wanted).results.first
        guard case .text(let text)? = found?.attributes?["pdmn"] else { throw KeychainError(.malformed, "no pdmn") }
        #expect(text == accessibility.rawValue && found?.accessibility == accessibility)
        #expect(keychain.find(item).count == 1, "KC-02")
        #expect(keychain.find(Self.anna.with(["pdmn": accessibility == .always ? "ak" : "dk"])).code == .itemNotFound)
        keychain.lock.lock()
        #expect(keychain.find(wanted).code == (accessibility.needsUnlocked ? .locked : nil), "locked")
        keychain.lock.restart()
        let isAlways = accessibility == .always || accessibility == .alwaysThisDeviceOnly
        #expect(keychain.find(wanted).code == (isAlways ? nil : .locked), "before the first unlock: KC-08")
        #expect(keychain.add(item).code == (isAlways ? .duplicateItem : .locked), "KC-08")
        keychain.lock.unlock()
        #expect(keychain.find(wanted).count == 1)
        #expect(keychain.delete(item).count == 1, "112")
    }

    @Test(arguments: EngineHome.all) func withoutAPasscodeItsItemsAreGone(_ home: EngineHome) throws {
        let keychain = try home.make()
        let item = Self.anna.with(["pdmn": "akpu"])
        let other = item.with(["acct": "bertha"])
        #expect(keychain.add(item).count == 1 && keychain.add(other).count == 1)
        keychain.lock.removePasscode()
        #expect(keychain.find(item).code == .itemNotFound, "107")
        #expect(keychain.update(item, to: ["icmt": "new"]).code == .itemNotFound, "107")
        #expect(keychain.add(item).code == .notAvailable, "108")
        #expect(keychain.delete(item).count == 1, "118")
        keychain.lock.setPasscode()
        #expect(keychain.find(other).code == .itemNotFound, "109")
        #expect(keychain.add(other).count == 1, "109")
        #expect(keychain.find(other).count == 1, "109")
    }

    @Test(arguments: EngineHome.all) func authenticationKeysAreChecked(_ home: EngineHome) throws {
        let keychain = try home.make()
        let constrained = ItemValue.accessControl(try AccessControl(.whenUnlocked, .userPresence))
        #expect(keychain.add(Self.anna).count == 1)
        #expect(keychain.update(Self.anna, to: ["u_CredRef": .data([1])]).code == .noSuchAttribute, "104")
        #expect(keychain.add(.generic(["acct": "b", "u_AuthUI": "u_AuthUIS"])).code == .malformed, "110")
        #expect(keychain.delete(Self.anna.with(["u_AuthUI": "u_AuthUIS"])).code == .malformed, "110")
        #expect(keychain.find(Self.anna.with(["u_AuthUI": "u_AuthUIS"])).count == 1, "115")
        #expect(
            keychain.find(Self.anna.with(["u_AuthCtx": .foreign("LAContext"), "u_CredRef": .data([1])])).code
                == .malformed, "3.12")
        #expect(keychain.add(.generic(["acct": "b", "accc": constrained])).code == .unimplemented)
        #expect(keychain.add(.generic(["acct": "b", "accc": constrained, "sync": true])).code == .malformed, "113")
        #expect(keychain.add(.generic(["acct": "b", "accc": "ak"])).code == .malformed, "122")
        #expect(keychain.delete(Self.anna.with(["accc": 1])).code == .malformed, "122")
        #expect(
            keychain.add(.generic(["acct": "b", "accc": .accessControl(AccessControl(.always)), "pdmn": "ak"])).code
                == .malformed, "3.3")
        #expect(keychain.find(.generic(["acct": "b"])).code == .itemNotFound, "105: nothing was stored")
        #expect(keychain.add(.generic(["acct": "b", "accc": .accessControl(AccessControl(.always))])).count == 1)
        #expect(keychain.find(.generic(["acct": "b", "pdmn": "dk"])).count == 1)
    }

    @Test(arguments: EngineHome.all) func valuesComeBackAsTheyWere(_ home: EngineHome) throws {
        let keychain = try home.make()
        let data = ItemValue.data([0x61, 0, 0xFF])
        #expect(keychain.add(.internet(["srvr": data])).count == 1)
        let found = keychain.find(.internet(["srvr": data, "r_Attributes": true])).results.first
        #expect(found?.attributes?["srvr"]?.isSame(as: data) == true, "123")
        #expect(keychain.add(.generic(["acct": .data([0x61])])).count == 1)
        #expect(keychain.find(.generic(["acct": "a"])).code == .itemNotFound, "text is not data")
        #expect(keychain.add(.generic(["acct": "a"])).count == 1)
        #expect(keychain.add(.generic(["acct": "\u{E9}"])).count == 1)
        #expect(keychain.add(.generic(["acct": "e\u{301}"])).count == 1, "texts that only look equal are two names")
        #expect(keychain.add(.generic(["acct": "a\0b"])).count == 1)
        #expect(keychain.find(.generic(["acct": "a\0b"])).count == 1)
        #expect(keychain.find(.generic(["acct": "a\0c"])).code == .itemNotFound)
        #expect(keychain.add(.internet(["srvr": "b", "port": "eighty"])).code == .malformed, "148")
        #expect(keychain.add(.internet(["srvr": "b", "port": "80"])).count == 1)
        #expect(keychain.find(.internet(["port": 80])).count == 1)
        #expect(keychain.find(.internet(["port": .real(80)])).count == 1)
    }

    @Test(arguments: EngineHome.all) func hostsAndSubdomainsAreFound(_ home: EngineHome) throws {
        let keychain = try home.make()
        for host in ["example.com", "www.example.com", "badexample.com", "example.com.org", "a.b.Example.COM"] {
            #expect(keychain.add(.internet(["srvr": .text(host)])).count == 1)
        }
        let query = ItemDictionary.internet(["m_HostOrSubdomainOfHost": "example.com"]).with(Self.all)
        #expect(keychain.find(query).count == 3, "130")
        #expect(keychain.find(query.with(["class": "genp"])).code == .unimplemented, "3.9")
        for key in ["m_CaseInsensitive", "m_TrustedOnly"] {
            #expect(keychain.find(query.with([key: true])).code == .unimplemented, "3.9 \(key)")
        }
        for key in ["m_SubjectContains", "m_EmailAddressIfPresent"] {
            #expect(keychain.find(query.with([key: "x"])).code == .unimplemented, "82 \(key)")
        }
        #expect(keychain.find(query.with(["m_Issuers": .list([])])).code == .unimplemented, "82")
        #expect(keychain.find(query.with(["m_Issuers": "x"])).code == .malformed)
    }

    @Test(arguments: EngineHome.all) func groupsKeepProgramsApart(_ home: EngineHome) throws {
        let keychain = try home.make()
        let nobody = EngineFixture.nobody
        #expect(keychain.add(Self.anna, as: nobody).code == .missingEntitlement, "138")
        #expect(keychain.find(Self.anna, as: nobody).code == .missingEntitlement, "138")
        #expect(keychain.update(Self.anna, to: ["icmt": "x"], as: nobody).code == .missingEntitlement, "138")
        #expect(keychain.delete(Self.anna, as: nobody).code == .missingEntitlement, "138")
        #expect(keychain.add(Self.anna).count == 1, "139")
        let stranger = EngineFixture.stranger
        let foreign = Self.anna.with(["agrp": "org.example.app"])
        #expect(keychain.add(foreign, as: stranger).code == .missingEntitlement, "140")
        #expect(keychain.find(foreign, as: stranger).code == .missingEntitlement, "140")
        #expect(keychain.update(foreign, to: ["icmt": "x"], as: stranger).code == .missingEntitlement, "140")
        #expect(keychain.delete(foreign, as: stranger).code == .missingEntitlement, "140")
        #expect(keychain.find(Self.anna, as: stranger).code == .itemNotFound, "141")
        #expect(keychain.update(Self.anna, to: ["icmt": "x"], as: stranger).code == .itemNotFound, "141")
        #expect(keychain.delete(Self.anna, as: stranger).code == .itemNotFound, "141")
        #expect(keychain.update(Self.anna, to: ["agrp": "org.example.other"]).code == .missingEntitlement, "142")
        #expect(keychain.add(Self.anna, as: stranger).count == 1, "another group is another item")
        #expect(keychain.find(Self.anna.with(["agrp": "org.example.shared"])).code == .itemNotFound)
        #expect(keychain.update(Self.anna, to: ["agrp": "org.example.shared"]).count == 1)
        #expect(keychain.find(Self.anna.with(["agrp": "org.example.shared", "r_Data": true])).count == 1)
        #expect(keychain.delete(Self.anna.with(["agrp": "org.example.app"])).code == .itemNotFound, "56")
        #expect(keychain.find(.generic(Self.all), as: EngineFixture.everybody).count == 2, "3.5: all groups")
        #expect(keychain.add(Self.anna, as: EngineFixture.everybody).code == .missingEntitlement, "no group to go into")
        let token = Caller(applicationIdentifier: nil, accessGroups: ["com.apple.token", "a"], source: .configured)
        #expect(keychain.add(Self.anna.with(["agrp": "com.apple.token"]), as: token).code == .missingEntitlement, "88")
        #expect(keychain.add(Self.anna, as: token).code == .missingEntitlement, "88")
        #expect(
            keychain.find(.generic(["agrp": "com.apple.token"]), as: token).code == .itemNotFound, "3.5: may be read")
    }

    @Test(arguments: EngineHome.all) func internalAttributesAreRefused(_ home: EngineHome) throws {
        let keychain = try home.make()
        #expect(keychain.add(Self.anna).count == 1)
        for key in ["clip", "UUID", "persistref", "musr", "sha1", "ggrp", "sysb", "toid"] {
            let hidden = Self.anna.with([key: "x"])
            #expect(keychain.add(hidden).code == .malformed, "124 \(key)")
            #expect(keychain.find(hidden).code == .malformed, "124 \(key)")
            #expect(keychain.update(hidden, to: ["icmt": "x"]).code == .malformed, "124 \(key)")
            #expect(keychain.update(Self.anna, to: [key: "x"]).code == .malformed, "124 \(key)")
            #expect(keychain.delete(hidden).code == .malformed, "124 \(key)")
            #expect(keychain.delete(hidden, as: EngineFixture.nobody).code == .malformed, "3.10: comes before groups")
        }
    }

    @Test(arguments: EngineHome.all) func returnKeysAndLimitsHaveTheirPlaces(_ home: EngineHome) throws {
        let keychain = try home.make()
        #expect(keychain.add(Self.anna).count == 1)
        for key in ["r_Data", "r_Attributes", "r_Ref", "r_PersistentRef"] {
            #expect(keychain.update(Self.anna.with([key: false]), to: ["icmt": "x"]).code == .malformed, "121 \(key)")
            #expect(keychain.update(Self.anna, to: [key: true]).code == .malformed, "121 \(key)")
        }
        for limit: ItemValue in ["m_LimitAll", "m_LimitOne", 1] {
            #expect(keychain.delete(Self.anna.with(["m_Limit": limit])).code == .malformed, "3.10")
            #expect(keychain.update(Self.anna.with(["m_Limit": limit]), to: ["icmt": "x"]).code == .malformed, "3.10")
            #expect(keychain.add(Self.anna.with(["acct": "b", "m_Limit": limit])).code == .malformed)
        }
        #expect(keychain.find(Self.anna.with(["m_Limit": "all"])).code == .malformed, "3.9")
        #expect(keychain.delete(Self.anna.with(["r_Data": true])).count == 1, "the dictionary of a find can delete")
    }

    @Test(arguments: EngineHome.all) func keysAndCertificatesWait(_ home: EngineHome) throws {
        let keychain = try home.make()
        for itemClass in ["cert", "keys", "idnt"] {
            let item: ItemDictionary = ["class": .text(itemClass), "labl": "x"]
            #expect(keychain.add(item).code == .unimplemented)
            #expect(keychain.find(item).code == .itemNotFound)
            #expect(keychain.update(item, to: ["labl": "y"]).code == .itemNotFound)
            #expect(keychain.delete(item).code == .itemNotFound)
            #expect(keychain.delete(["class": .text(itemClass)]).code == .itemNotFound, "all of a class at a log-out")
        }
        #expect(keychain.add(["class": "cert", "atag": "x"]).code == .noSuchAttribute, "39")
        #expect(keychain.delete(["class": "cert", "atag": "x"]).code == .noSuchAttribute, "39")
        #expect(keychain.add(["class": "none"]).code == .noSuchClass)
        #expect(keychain.add(["acct": "x"]).code == .malformed)
        #expect(keychain.add(["class": 1]).code == .malformed)
    }
}
