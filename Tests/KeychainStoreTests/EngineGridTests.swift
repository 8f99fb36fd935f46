import KeychainModel
import KeychainStore
import Testing

/// Every key with every kind of value, in every place where a dictionary can stand, for every class. What is expected
/// follows from the tables below, which are those of apple-semantics 3.1, 3.9 and 3.10 written down once more.
@Suite struct EngineGridTests {
    enum Place: String, CaseIterable { case add, find, updateQuery, updateAttributes, delete }

    private static let classes = ["genp", "inet", "cert", "keys", "idnt"]

    /// One value of each kind, and those that some kinds tell apart.
    private static let values: [(name: String, value: ItemValue)] = [
        ("text", "some text"), ("empty text", ""), ("digits", "42"), ("more digits", "042"), ("ak", "ak"),
        ("syna", "syna"), ("own group", "org.example.app"), ("data", .data([1, 0])), ("no data", .data([])),
        ("zero", 0), ("one", 1), ("number", 77), ("real", .real(3)), ("fraction", .real(0.5)),
        ("no number", .real(.nan)),
        ("true", true), ("false", false), ("date", .date(1)), ("no date", .date(.infinity)), ("secret", secret("x")),
        ("access control", .accessControl(AccessControl(.whenUnlocked))), ("list", .list([])),
        ("nested", .list([.dictionary(["acct": .list([.null])])])), ("dictionary", .dictionary([:])), ("null", .null),
        ("foreign", .foreign("NSObject")), ("limit", "m_LimitAll"), ("skip", "u_AuthUIS"),
    ]

    // MARK: Attributes

    private static let text = "text", code = "code", number = "number", date = "date"

    /// Key, kind of value, classes.
    private static let attributes: [(key: String, kind: String, classes: String)] =
        kinds("labl vwht", text, "genp inet cert keys idnt") + kinds("cdat mdat", date, "genp inet cert keys idnt")
        + kinds("acct desc icmt prot", text, "genp inet") + kinds("scrp invi nega cusi", number, "genp inet")
        + kinds("crtr type", number, "genp inet keys idnt") + kinds("alis", text, "genp inet cert idnt")
        + kinds("svce gena", text, "genp") + kinds("sdmn srvr path", text, "inet") + kinds("ptcl atyp", code, "inet")
        + kinds("port", number, "inet") + kinds("ctyp cenc", number, "cert idnt")
        + kinds("issr slnr subj skid pkhh", text, "cert idnt") + kinds("klbl atag", text, "keys idnt")
        + kinds(
            "kcls bsiz esiz perm priv modi sens asen extr next encr decr drve sign vrfy snrc vyrc wrap unwp", number,
            "keys idnt") + kinds("sdat edat", date, "keys idnt")
        + kinds("agrp", "group", "genp inet cert keys idnt") + kinds("pdmn", "accessible", "genp inet cert keys idnt")
        + kinds("accc", "control", "genp inet cert keys idnt") + kinds("sync", "sync", "genp inet cert keys idnt")
        + kinds("tomb", number, "genp inet cert keys idnt") + kinds("tkid", text, "genp inet cert keys idnt")
        + kinds("toid musr UUID persistref sysb sha1 ggrp clip", "hidden", "genp inet cert keys idnt")

    private static func kinds(
        _ keys: String, _ kind: String, _ classes: String
    ) -> [(key: String, kind: String, classes: String)] {
        keys.split(separator: " ").map { (String($0), kind, classes) }
    }

    private static func takes(_ kind: String, _ name: String) -> Bool {
        let texts = ["text", "empty text", "digits", "more digits", "ak", "syna", "own group", "limit", "skip"]
        let bytes = ["data", "no data"]
        let numbers = ["digits", "zero", "one", "number", "real", "true", "false"]
        return switch kind {
        case text: (texts + bytes).contains(name)
        case code: (texts + bytes + numbers).contains(name)
        case number: numbers.contains(name)
        case date: name == "date"
        case "group": texts.contains(name)
        case "accessible": name == "ak"
        case "control": name == "access control"
        case "sync": ["syna", "zero", "one", "true", "false"].contains(name)
        default: false
        }
    }

    private static func expected(
        _ place: Place, _ itemClass: String, _ key: String, _ kind: String, _ classes: String, _ name: String
    ) -> KeychainError.Code? {
        let isTrue = ["one", "true", "number", "digits", "real"].contains(name)
        let isItem = place == .add || place == .updateAttributes
        guard kind != "hidden" else { return .malformed }
        if key == "agrp", takes(kind, name), name != "own group" { return .missingEntitlement }
        guard takes(kind, name) else { return .malformed }
        switch key {
        case "tomb" where isItem || (place == .updateQuery && isTrue): return .malformed
        case "tkid" where place == .updateQuery || place == .updateAttributes: return .malformed
        case "sync" where name == "syna" && isItem: return .malformed
        default: break
        }
        guard classes.contains(itemClass) else { return .noSuchAttribute }
        guard key != "tkid" else { return .unimplemented }
        guard place == .add else { return .itemNotFound }
        return itemClass == "genp" || itemClass == "inet" ? nil : .unimplemented
    }

    @Test(arguments: EngineHome.all, Place.allCases) func attributes(_ home: EngineHome, _ place: Place) throws {
        let keychain = try home.make()
        for itemClass in Self.classes {
            for (key, kind, classes) in Self.attributes {
                for (name, value) in Self.values {
                    let code = ask(keychain, place, ["class": .text(itemClass)], [key: value])
                    let expected = Self.expected(place, itemClass, key, kind, classes, name)
                    #expect(code == expected, "\(place) \(itemClass) \(key) \(name)")
                    if code == nil {
                        #expect(keychain.delete(["class": .text(itemClass), "sync": "syna"]).count == 1)
                    }
                }
            }
        }
        #expect(keychain.ask(.list(["sync": "syna"]), as: EngineFixture.administrator).count == 0)
    }

    /// Asks with one key more than the class, and with what else the call needs.
    private func ask(
        _ keychain: EngineFixture, _ place: Place, _ base: ItemDictionary, _ more: ItemDictionary
    ) -> KeychainError.Code? {
        switch place {
        case .add: keychain.add(base.with(more)).code
        case .find: keychain.find(base.with(more)).code
        case .updateQuery: keychain.update(base.with(more), to: ["labl": "x"]).code
        case .updateAttributes: keychain.update(base, to: more).code
        case .delete: keychain.delete(base.with(more)).code
        }
    }

    // MARK: Other keys

    /// Key, and the names of the values that it takes.
    private static let queryKeys: [(key: String, takes: [String])] =
        ["r_Data", "r_Attributes", "r_Ref", "r_PersistentRef", "u_Tomb", "u_NoAuthUI", "nleg"].map { ($0, booleans) }
        + ["u_SystemKeychain", "u_SystemKeychainAlways", "m_CaseInsensitive", "m_TrustedOnly"].map { ($0, booleans) }
        + ["m_EmailAddressIfPresent", "m_SubjectContains", "m_HostOrSubdomainOfHost", "u_OpPrompt"].map { ($0, texts) }
        + ["m_Issuers", "m_ItemList", "m_SearchList", "u_ItemList"].map { ($0, ["list", "nested"]) }
        + ["m_Policy", "v_Ref", "u_CredRef", "u_AuthCtx"].map { ($0, ["foreign", "data", "no data"]) }
        + [
            ("m_ValidOnDate", ["date", "null"]), ("v_Data", ["secret"]), ("v_PersistentRef", []),
            ("m_Limit", ["zero", "one", "number", "real", "fraction", "limit"]), ("u_AuthUI", ["skip"]),
            ("m_Nothing", []), ("u_Nothing", []), ("r_Nothing", []), ("v_Nothing", []), ("f_Nothing", []), ("zzzz", []),
            ("", []), ("a\0", []), ("Class", []),
        ]

    private static let booleans = ["true", "false", "zero", "one", "number", "real", "fraction"]
    private static let texts = [
        "text", "empty text", "digits", "more digits", "ak", "syna", "own group", "limit", "skip",
    ]

    private static func expected(
        _ place: Place, _ itemClass: String, _ key: String, takes: Bool, _ name: String
    ) -> KeychainError.Code? {
        let isPassword = itemClass == "genp" || itemClass == "inet"
        let isTrue = ["true", "one", "number", "real", "fraction"].contains(name)
        if place == .updateAttributes {
            if key == "u_CredRef" { return .noSuchAttribute }
            guard key == "v_Data", takes else { return .malformed }
            return .itemNotFound
        }
        guard takes else { return .malformed }
        if key.hasPrefix("u_System"), isTrue { return .missingEntitlement }
        switch key.prefix(2) {
        case "m_" where place != .find: return .malformed
        case "m_" where key != "m_Limit" && (key != "m_HostOrSubdomainOfHost" || itemClass != "inet"):
            return .unimplemented
        case "r_" where place == .updateQuery: return .malformed
        case "v_" where key == "v_Ref": return isPassword ? .malformed : .unimplemented
        case "u_" where key == "u_AuthUI" && place != .find: return .malformed
        case "u_" where key == "u_ItemList": return .unimplemented
        default: break
        }
        guard place == .add else { return .itemNotFound }
        return isPassword ? nil : .unimplemented
    }

    @Test(arguments: EngineHome.all, Place.allCases) func otherKeys(_ home: EngineHome, _ place: Place) throws {
        let keychain = try home.make()
        for itemClass in Self.classes {
            for (key, takes) in Self.queryKeys {
                for (name, value) in Self.values {
                    let code = ask(keychain, place, ["class": .text(itemClass)], [key: value])
                    let expected = Self.expected(place, itemClass, key, takes: takes.contains(name), name)
                    #expect(code == expected, "\(place) \(itemClass) \(key) \(name)")
                    if code == nil { #expect(keychain.delete(["class": .text(itemClass)]).count == 1) }
                }
            }
        }
    }

    @Test func everyKeyIsInAGrid() {
        let tested = Set(Self.attributes.map(\.key) + Self.queryKeys.map(\.key) + ["class"])
        #expect(Set(ItemAttribute.all.map(\.key)).isSubset(of: tested))
        #expect(Set(QueryKey.allCases.map(\.rawValue)).isSubset(of: tested))
        #expect(ItemAttribute.all.count == Self.attributes.count)
    }

    // MARK: Sizes

    @Test(arguments: EngineHome.all) func thereAreLimits(_ home: EngineHome) throws {
        let keychain = try home.make()
        var many = ItemDictionary.generic()
        for index in 0..<128 { many["key\(index)"] = 1 }
        #expect(keychain.add(many).code == .malformed, "129 keys")
        #expect(keychain.find(many).code == .malformed)
        #expect(keychain.update(.generic(), to: many).code == .malformed)
        #expect(keychain.delete(many).code == .malformed)
        let most = ItemQuery.maximumAttributeBytes
        for (count, code) in [
            (0, nil), (1, nil), (most, nil), (most + 1, KeychainError.Code.malformed), (1 << 20, .malformed),
        ] {
            let item = ItemDictionary.generic(["icmt": .data([UInt8](repeating: 7, count: count))])
            #expect(keychain.add(item).code == code, "\(count) bytes of attributes")
            #expect(keychain.delete(item).code == code, "\(count) bytes of attributes")
        }
        #expect(keychain.update(.generic(), to: [:]).code == .malformed, "nothing to change")
        let half = ItemValue.data([UInt8](repeating: 7, count: most / 2))
        #expect(keychain.add(.generic(["icmt": half])).count == 1)
        #expect(keychain.update(.generic(), to: ["desc": half]).count == 1, "\(most) bytes together")
        #expect(keychain.update(.generic(), to: ["labl": "x"]).code == .malformed, "one more")
    }

    @Test(arguments: EngineHome.all, [0, 1, 31, 32, 33, 4096, ItemSecret.maximumCount]) func secretsOfEverySize(
        _ home: EngineHome, count: Int
    ) throws {
        let keychain = try home.make()
        let item = ItemDictionary.generic(["v_Data": secret(String(repeating: "s", count: count))])
        #expect(keychain.add(item).count == 1)
        let found = keychain.find(.generic(["r_Data": true])).results.first?.secret
        #expect(found?.count == count)
        #expect(found?.textForTests.utf8.allSatisfy { $0 == UInt8(ascii: "s") } == true)
    }
}
