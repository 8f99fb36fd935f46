import Security
import Testing

/// Numbers 29 to 64: adding, finding, changing and removing.
extension Checklist {
    static let items: [ChecklistRow] = [
        ChecklistRow(29, "a search in an empty keychain is -25300 and leaves the result nil") { home in
            try home.calling {
                for itemClass in [kSecClassGenericPassword, kSecClassInternetPassword] {
                    for returned in [[:], returnData, returnAttributes, returnReference, [kSecReturnRef: true]] {
                        for limit in [[:], limitAll, [kSecMatchLimit: kSecMatchLimitOne]] as [Attributes] {
                            let found = find([kSecClass: itemClass] + returned + limit)
                            #expect(found.status == -25300)
                            #expect(found.object == nil)
                        }
                    }
                }
            }
        },
        ChecklistRow(30, "a first add is right") { home in
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
        },
        ChecklistRow(31, "a second identical add is -25299") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(add(item, secret("x")) == -25299)
                    #expect(add(item, secret("y")) == -25299)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(32, "after a delete the add is right again") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item) == 0)
                    #expect(add(item, secret("y")) == 0)
                    #expect(find(item, returnData).text == "y")
                }
            }
        },
        ChecklistRow(33, "an add with a result pointer and no return key leaves nil") { home in
            try home.calling {
                for item in both {
                    let added = adding(item, secret("x"))
                    #expect(added.status == 0)
                    #expect(added.object == nil)
                }
            }
        },
        ChecklistRow(34, "an add that returns a persistent reference returns Data that finds the item") { home in
            try home.calling {
                for item in both {
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(find([kSecValuePersistentRef: reference] + returnData).text == "x")
                }
            }
        },
        ChecklistRow(36, "an add that returns data returns what was given") { home in
            try home.calling {
                for item in both {
                    #expect(adding(item, secret("x") + returnData).text == "x")
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(37, "attributes have no values, and numbers are numbers") { home in
            try home.calling {
                for item in both {
                    let numbers: Attributes = [kSecAttrCreator: 7, kSecAttrType: 8]
                    let added = try #require(adding(item, secret("x") + returnAttributes + numbers).attributes)
                    let found = try #require(find(item, returnAttributes).attributes)
                    for attributes in [added, found] {
                        #expect(!attributes.keys.contains { $0.hasPrefix("v_") })
                        #expect(attributes["crtr"] as? Int == 7)
                        #expect(attributes["type"] as? Int == 8)
                        #expect(attributes["acct"] as? String == item[kSecAttrAccount] as? String)
                        #expect(attributes["cdat"] is Date && attributes["mdat"] is Date)
                        #expect(attributes["pdmn"] as? String == "ak")
                        #expect(attributes["sync"] as? Int == 0)
                    }
                }
            }
        },
        ChecklistRow(38, "everything together is a dictionary of everything, with the class") { home in
            try home.calling {
                let everything = returnData + returnAttributes + returnReference + [kSecReturnRef: true]
                for item in both {
                    let added = try #require(adding(item, secret("x") + everything).attributes)
                    let found = try #require(find(item, everything).attributes)
                    for attributes in [added, found] {
                        #expect(attributes["v_Data"] as? Data == Data("x".utf8))
                        #expect((attributes["v_PersistentRef"] as? Data)?.count == 20)
                        #expect(attributes["class"] as? String == item[kSecClass] as? String)
                        #expect(attributes["acct"] as? String == item[kSecAttrAccount] as? String)
                        #expect(attributes["v_Ref"] == nil)
                    }
                }
            }
        },
        ChecklistRow(39, "an attribute of keys on a password is -25303 on add and delete") { home in
            try home.calling {
                for item in both {
                    let wrong = item + [kSecAttrApplicationTag: Data("tag".utf8)]
                    #expect(add(wrong, secret("x")) == -25303)
                    #expect(find(item).status == -25300)
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(wrong) == -25303)
                    #expect(update(item, [kSecAttrApplicationTag: Data()]) == -25303)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(40, "a synchronizable item can be added and deleted") { home in
            try home.calling {
                for item in both.map({ $0 + [kSecAttrSynchronizable: true] }) {
                    #expect(add(item, secret("x")) == 0)
                    #expect(find(item, returnData).text == "x")
                    #expect(delete(item) == 0)
                    #expect(find(item).status == -25300)
                }
            }
        },
        ChecklistRow(41, "adding the same internet password twice is -25299") { home in
            try home.calling {
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(add(internet("a"), secret("x") + [kSecAttrLabel: "other"]) == -25299)
            }
        },
        ChecklistRow(42, "an internet password is found by its full set of attributes") { home in
            try home.calling {
                let more: Attributes = [
                    kSecAttrSecurityDomain: "domain", kSecAttrLabel: "label", kSecAttrComment: "comment",
                    kSecAttrDescription: "description", kSecAttrCreator: 1, kSecAttrType: 2,
                    kSecAttrIsInvisible: true, kSecAttrIsNegative: false,
                ]
                #expect(add(internet("a", more), secret("x")) == 0)
                #expect(find(internet("a", more), returnData).text == "x")
                for key in more.keys {
                    let other: Any = more[key] is String ? "no" : more[key] is Bool ? !(more[key] as? Bool ?? true) : 9
                    #expect(find(internet("a", more + [key: other])).status == -25300, "\(key)")
                }
            }
        },
        ChecklistRow(43, "the attributes that were returned are a query that finds the item") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x") + [kSecAttrLabel: "label"]) == 0)
                    let attributes = try #require(find(item, returnAttributes).attributes)
                    var query = attributes as [AnyHashable: Any]
                    query[kSecClass] = item[kSecClass]
                    query[kSecReturnData] = true
                    query["sha1"] = nil
                    var result: AnyObject?
                    #expect(SecItemCopyMatching(query as CFDictionary, &result) == 0)
                    #expect(result as? Data == Data("x".utf8))
                }
            }
        },
        ChecklistRow(44, "the server can be changed, and the same change again finds nothing") { home in
            try home.calling {
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(update(internet("a"), [kSecAttrServer: "b"]) == 0)
                #expect(update(internet("a"), [kSecAttrServer: "b"]) == -25300)
                #expect(find(internet("b"), returnData).text == "x")
            }
        },
        ChecklistRow(45, "a delete with the old server is -25300") { home in
            try home.calling {
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(update(internet("a"), [kSecAttrServer: "b"]) == 0)
                #expect(delete(internet("a")) == -25300)
                #expect(delete(internet("b")) == 0)
            }
        },
        ChecklistRow(46, "an update that would make an item equal to another is -25299 and changes nothing") { home in
            try home.calling {
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(add(internet("b"), secret("y")) == 0)
                #expect(update(internet("a"), [kSecAttrServer: "b"]) == -25299)
                #expect(find(internet("a"), returnData).text == "x")
                #expect(find(internet("b"), returnData).text == "y")
            }
        },
        ChecklistRow(47, "a delete by server alone works") { home in
            try home.calling {
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(add(internet("a", [kSecAttrPort: 80]), secret("x")) == 0)
                #expect(add(internet("b"), secret("x")) == 0)
                #expect(delete([kSecClass: kSecClassInternetPassword, kSecAttrServer: "a"]) == 0)
                #expect(count(kSecClassInternetPassword) == 1)
            }
        },
        ChecklistRow(48, "an update of the secret changes it") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, secret("a longer one")) == 0)
                    #expect(find(item, returnData).text == "a longer one")
                    #expect(update(item, secret("")) == 0)
                    #expect(find(item, returnData).data == Data())
                }
            }
        },
        ChecklistRow(49, "a null secret is -50") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, [kSecValueData: NSNull()]) == -50)
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, [kSecValueData: NSNull()]) == -50)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(50, "a secret that is a text is -50") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, [kSecValueData: "text"]) == -50)
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, [kSecValueData: "text"]) == -50)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(51, "a deleted synchronizable item leaves a tombstone, which only its attribute finds") { home in
            try home.calling {
                for item in both.map({ $0 + [kSecAttrSynchronizable: true] }) {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item) == 0)
                    #expect(find(item).status == -25300)
                    #expect(find(item, tombstone(true)).status == 0)
                    #expect(find(item, tombstone(false)).status == -25300)
                }
            }
        },
        ChecklistRow(52, "adding over a tombstone works") { home in
            try home.calling {
                for item in both.map({ $0 + [kSecAttrSynchronizable: true] }) {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item) == 0)
                    #expect(add(item, secret("y")) == 0)
                    #expect(find(item, returnData).text == "y")
                    #expect(find(item, tombstone(true)).status == -25300)
                }
            }
        },
        ChecklistRow(53, "a delete that asks for no tombstone leaves nothing") { home in
            try home.calling {
                for item in both.map({ $0 + [kSecAttrSynchronizable: true] }) {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item + [useTombstones: false]) == 0)
                    #expect(find(item, tombstone(true)).status == -25300)
                }
            }
        },
        ChecklistRow(54, "an item that is not synchronizable leaves a tombstone only when asked") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item) == 0)
                    #expect(find(item, tombstone(true)).status == -25300)
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item + [useTombstones: true]) == 0)
                    #expect(find(item).status == -25300)
                    #expect(find(item, tombstone(true)).status == 0)
                }
            }
        },
        ChecklistRow(55, "a tombstone can be deleted itself") { home in
            try home.calling {
                for item in both.map({ $0 + [kSecAttrSynchronizable: true] }) {
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item) == 0)
                    #expect(delete(item + tombstone(true) + [useTombstones: false]) == 0)
                    #expect(find(item, tombstone(true)).status == -25300)
                }
            }
        },
        ChecklistRow(56, "a delete of an access group leaves the others", needs: [.callers]) { home in
            try home.calling(["one", "two"]) {
                for group in ["one", "two"] {
                    for item in both { #expect(add(item, secret("x") + [kSecAttrAccessGroup: group]) == 0) }
                }
                for itemClass in [kSecClassGenericPassword, kSecClassInternetPassword] {
                    #expect(delete([kSecClass: itemClass, kSecAttrAccessGroup: "one"]) == 0)
                    let left = find([kSecClass: itemClass] + returnAttributes + limitAll).list as? [[String: Any]]
                    #expect(left?.map { $0["agrp"] as? String } == ["two"])
                }
            }
        },
        ChecklistRow(60, "a persistent reference is Data and finds the attributes that attributes find") { home in
            try home.calling {
                for item in both {
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    let one = try #require(find([kSecValuePersistentRef: reference] + returnAttributes).object)
                    let other = try #require(find(item, returnAttributes).object)
                    #expect(CFEqual(one, other))
                }
            }
        },
        ChecklistRow(61, "after a delete neither way finds it") { home in
            try home.calling {
                for item in both {
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(delete(item) == 0)
                    #expect(find(item).status == -25300)
                    #expect(find([kSecValuePersistentRef: reference]).status == -25300)
                }
            }
        },
        ChecklistRow(62, "an update by reference changes that item and no other") { home in
            try home.calling {
                for item in both {
                    let other = item + [kSecAttrAccount: "other"]
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(add(other, secret("x")) == 0)
                    #expect(update([kSecValuePersistentRef: reference], secret("y")) == 0)
                    #expect(find(item, returnData).text == "y")
                    #expect(find(other, returnData).text == "x")
                }
            }
        },
        ChecklistRow(63, "a reference outlives an update") { home in
            try home.calling {
                for item in both {
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(update(item, [kSecAttrAccount: "new", kSecValueData: Data("y".utf8)]) == 0)
                    #expect(find([kSecValuePersistentRef: reference] + returnData).text == "y")
                    #expect(find(item + [kSecAttrAccount: "new"] + returnReference).data == reference)
                }
            }
        },
        ChecklistRow(64, "a delete by reference removes that item alone, and then is -25300") { home in
            try home.calling {
                for item in both {
                    let other = item + [kSecAttrAccount: "other"]
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(add(other, secret("x")) == 0)
                    #expect(delete([kSecValuePersistentRef: reference]) == 0)
                    #expect(delete([kSecValuePersistentRef: reference]) == -25300)
                    #expect(find(item).status == -25300)
                    #expect(find(other).status == 0)
                }
            }
        },
    ]

    /// One item of each class of passwords.
    static var both: [Attributes] { [generic("me"), internet("server")] }

    /// Apple's own key for whether a delete leaves a tombstone.
    static var useTombstones: CFString { NSString(string: "u_Tomb") }
    static func tombstone(_ flag: Bool) -> Attributes { [NSString(string: "tomb"): flag] }
}
