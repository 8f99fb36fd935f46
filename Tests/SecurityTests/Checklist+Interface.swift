import Security
import Testing

/// Numbers 119 to 150: the four calls themselves, access groups, and keychains beside each other.
extension Checklist {
    static let interface: [ChecklistRow] = [
        ChecklistRow(119, "all with references returns a reference in each") { home in
            try home.calling {
                for number in 0..<3 { #expect(add(generic("\(number)"), secret("x")) == 0) }
                let list = find([kSecClass: kSecClassGenericPassword] + returnReference + returnAttributes + limitAll)
                let references = try #require(list.object as? [[String: Any]]).map { $0["v_PersistentRef"] as? Data }
                #expect(references.count == 3)
                for reference in references {
                    #expect(find([kSecValuePersistentRef: try #require(reference)]).status == 0)
                }
            }
        },
        ChecklistRow(121, "a return key in the query of an update is -50") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    for key in [kSecReturnData, kSecReturnAttributes, kSecReturnRef, kSecReturnPersistentRef] {
                        #expect(update(item + [key: true], secret("y")) == -50)
                    }
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(122, "an access control of a wrong type is -50 on add and delete") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x") + [kSecAttrAccessControl: "text"]) == -50)
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item + [kSecAttrAccessControl: "text"]) == -50)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(123, "Data in an attribute of texts comes back as Data") { home in
            try home.calling {
                let server = Data([0, 0xff, 7])
                let item = internet("x", [kSecAttrServer: server])
                #expect(add(item, secret("x")) == 0)
                #expect(find(item, returnAttributes).attributes?["srvr"] as? Data == server)
                let other = generic("x", [kSecAttrAccount: Data("me".utf8)])
                #expect(add(other, secret("x")) == 0)
                #expect(find(other, returnAttributes).attributes?["acct"] as? Data == Data("me".utf8))
                #expect(find(generic("me")).status == -25300)
            }
        },
        ChecklistRow(124, "an attribute that is not for programs is -50 on all four calls") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    for key in ["clip", "UUID", "persistref", "musr"] {
                        let wrong = item + [NSString(string: key): "x"]
                        #expect(add(wrong + [kSecAttrAccount: "other"], secret("x")) == -50)
                        #expect(find(wrong).status == -50)
                        #expect(update(wrong, secret("y")) == -50)
                        #expect(update(item, [NSString(string: key): "x"]) == -50)
                        #expect(delete(wrong) == -50)
                    }
                    #expect(find(item, returnData).text == "x")
                }
                #expect(count(kSecClassGenericPassword) == 1)
            }
        },
        ChecklistRow(125, "passwords have no reference") { home in
            try home.calling {
                for item in both {
                    let added = adding(item, secret("x") + [kSecReturnRef: true])
                    #expect(added.status == 0)
                    #expect(added.object == nil)
                    let found = find(item, [kSecReturnRef: true])
                    #expect(found.status == 0)
                    #expect(found.object == nil)
                }
            }
        },
        ChecklistRow(129, "references have 20 bytes") { home in
            try home.calling {
                var references: Set<Data> = []
                for item in both {
                    let reference = try #require(adding(item, secret("x") + returnReference).data)
                    #expect(reference.count == 20)
                    #expect(reference.prefix(4) == Data((item[kSecClass] as? String ?? "").utf8))
                    references.insert(reference)
                    #expect(delete(item) == 0)
                    references.insert(try #require(adding(item, secret("x") + returnReference).data))
                }
                #expect(references.count == 4)
            }
        },
        ChecklistRow(130, "a host or anything below it finds the host and what is below it") { home in
            try home.calling {
                let servers = [
                    "example.com", "www.example.com", "a.b.example.com", "badexample.com", "com", "example.org",
                ]
                for server in servers { #expect(add(internet(server), secret(server)) == 0) }
                let query: Attributes = [
                    kSecClass: kSecClassInternetPassword, kSecMatchHostOrSubdomainOfHost: "example.com",
                ]
                let found = find(query + returnAttributes + limitAll).object as? [[String: Any]]
                #expect(Set((found ?? []).compactMap { $0["srvr"] as? String }) == Set(servers.prefix(3)))
                let host: Attributes = [kSecMatchHostOrSubdomainOfHost: "example.com"]
                #expect(find([kSecClass: kSecClassGenericPassword] + host).status == -4)
            }
        },
        ChecklistRow(133, "locked is -25308 with a nil result, and unlocking restores everything") { home in
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.lock()
            try home.calling {
                for item in both {
                    let found = find(item, returnData)
                    #expect(found.status == -25308)
                    #expect(found.object == nil)
                }
            }
            try home.unlock()
            try home.calling { for item in both { #expect(find(item, returnData).text == "x") } }
        },
        ChecklistRow(
            134, "while locked there are no attributes of items that need the unlocked state, and of others there are"
        ) { home in
            try home.calling {
                for accessibility in accessibilities {
                    #expect(
                        add(generic(accessibility as String), secret("x") + [kSecAttrAccessible: accessibility]) == 0)
                }
            }
            try home.lock()
            try home.calling {
                for accessibility in accessibilities {
                    let found = find(generic(accessibility as String), returnAttributes)
                    let isReadable = ["ck", "cku", "dk", "dku"].contains(accessibility as String)
                    #expect(found.status == (isReadable ? 0 : -25308), "\(accessibility)")
                    #expect((found.object != nil) == isReadable)
                }
            }
        },
        ChecklistRow(137, "the same item with another accessibility is -25299") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    for accessibility in accessibilities {
                        #expect(add(item, secret("y") + [kSecAttrAccessible: accessibility]) == -25299)
                    }
                }
            }
        },
        ChecklistRow(138, "a program without access groups gets -34018 on everything", needs: [.callersWithoutGroups]) {
            home in
            try home.calling([]) {
                for item in both {
                    #expect(add(item, secret("x")) == -34018)
                    #expect(find(item).status == -34018)
                    #expect(update(item, secret("y")) == -34018)
                    #expect(delete(item) == -34018)
                }
            }
        },
        ChecklistRow(139, "one access group is enough", needs: [.callers]) { home in
            for group in ["com.example.identifier", "com.example.shared"] {
                try home.calling([group]) {
                    for item in both {
                        #expect(add(item, secret(group)) == 0)
                        let found = find(item, returnAttributes + returnData).attributes
                        #expect(found?["agrp"] as? String == group)
                        #expect(found?["v_Data"] as? Data == Data(group.utf8))
                    }
                }
            }
        },
        ChecklistRow(140, "naming a foreign access group is -34018 on all four calls", needs: [.callers]) { home in
            let foreign: Attributes = [kSecAttrAccessGroup: "foreign"]
            try home.calling(["foreign"]) { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.calling(["own"]) {
                for item in both.map({ $0 + foreign }) {
                    #expect(add(item, secret("x")) == -34018)
                    #expect(find(item).status == -34018)
                    #expect(update(item, secret("y")) == -34018)
                    #expect(delete(item) == -34018)
                }
            }
            try home.calling(["foreign"]) { for item in both { #expect(find(item, returnData).text == "x") } }
        },
        ChecklistRow(141, "items of foreign access groups are not found: -25300", needs: [.callers]) { home in
            try home.calling(["foreign"]) { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.calling(["own"]) {
                for item in both {
                    #expect(find(item).status == -25300)
                    #expect(update(item, secret("y")) == -25300)
                    #expect(delete(item) == -25300)
                    #expect(add(item, secret("own")) == 0)
                }
            }
            try home.calling(["foreign"]) { for item in both { #expect(find(item, returnData).text == "x") } }
        },
        ChecklistRow(142, "moving an item to a foreign access group is -34018", needs: [.callers]) { home in
            try home.calling(["own", "shared"]) {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, [kSecAttrAccessGroup: "foreign"]) == -34018)
                    #expect(find(item, returnAttributes).attributes?["agrp"] as? String == "own")
                    #expect(update(item, [kSecAttrAccessGroup: "shared"]) == 0)
                    #expect(find(item, returnAttributes).attributes?["agrp"] as? String == "shared")
                }
            }
        },
        ChecklistRow(148, "a port that is no number is -50") { home in
            try home.calling {
                for wrong: Any in ["https", Data([1]), NSNull(), [443], ["port": 443], Date()] {
                    #expect(add(internet("a", [kSecAttrPort: wrong]), secret("x")) == -50)
                    #expect(find(internet("a", [kSecAttrPort: wrong])).status == -50)
                }
                #expect(count(kSecClassInternetPassword) == 0)
                #expect(add(internet("a"), secret("x")) == 0)
                #expect(update(internet("a"), [kSecAttrPort: "https"]) == -50)
                #expect(find(internet("a"), returnAttributes).attributes?["port"] as? Int == 443)
            }
        },
        ChecklistRow(150, "another database is a keychain of its own") { home in
            let other = try type(of: home).init()
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try other.calling {
                for item in both {
                    #expect(find(item).status == -25300)
                    #expect(add(item, secret("y")) == 0)
                }
            }
            try home.calling { for item in both { #expect(find(item, returnData).text == "x") } }
        },
    ]
}
