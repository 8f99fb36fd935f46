import Keychain
import KeychainModel
import Security
import Synchronization
import Testing

/// Numbers 83 to 118: synchronizable items, lock, accessibility.
extension Checklist {
    static let protection: [ChecklistRow] = [
        ChecklistRow(83, "a synchronizable item is invisible without the key, and visible with true and with any") {
            home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x") + [kSecAttrSynchronizable: true]) == 0)
                    #expect(find(item).status == -25300)
                    #expect(find(item + [kSecAttrSynchronizable: false]).status == -25300)
                    #expect(find(item + [kSecAttrSynchronizable: true], returnData).text == "x")
                    #expect(find(item + [kSecAttrSynchronizable: kSecAttrSynchronizableAny], returnData).text == "x")
                }
            }
        },
        ChecklistRow(84, "an update of a synchronizable item needs the key in the query") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x") + [kSecAttrSynchronizable: true]) == 0)
                    #expect(update(item, [kSecAttrComment: "new"]) == -25300)
                    #expect(update(item + [kSecAttrSynchronizable: true], [kSecAttrComment: "new"]) == 0)
                    let found = find(item + [kSecAttrSynchronizable: true], returnAttributes)
                    #expect(found.attributes?["icmt"] as? String == "new")
                }
            }
        },
        ChecklistRow(85, "all with data and references is an array of dictionaries") { home in
            try home.calling {
                try fill()
                for itemClass in [kSecClassGenericPassword, kSecClassInternetPassword] {
                    let list = find([kSecClass: itemClass] + returnData + returnReference + limitAll).list
                    #expect(list?.count == 3)
                    for element in try #require(list as? [[String: Any]]) {
                        #expect(Set(element.keys) == ["v_Data", "v_PersistentRef"])
                    }
                }
            }
        },
        ChecklistRow(86, "data alone is an array of Data, and so are references alone") { home in
            try home.calling {
                try fill()
                for itemClass in [kSecClassGenericPassword, kSecClassInternetPassword] {
                    let data = find([kSecClass: itemClass] + returnData + limitAll).object as? [Data]
                    #expect(data.map(Set.init) == Set(["0", "1", "2"].map { Data($0.utf8) }))
                    let references = find([kSecClass: itemClass] + returnReference + limitAll).object as? [Data]
                    #expect(references.map(Set.init)?.count == 3)
                }
            }
        },
        ChecklistRow(87, "an item without data has attributes and no data") { home in
            try home.calling {
                for item in both {
                    #expect(add(item) == 0)
                    let found = try #require(find(item, returnAttributes + returnData).attributes)
                    #expect(found["v_Data"] == nil)
                    #expect(found["acct"] as? String == "me")
                    #expect(find(item, returnData).data == Data())
                }
            }
        },
        ChecklistRow(88, "nothing can be added to the group of tokens", needs: [.callers]) { home in
            try home.calling(["one", "com.apple.token"]) {
                for item in both {
                    #expect(add(item, secret("x") + [kSecAttrAccessGroup: kSecAttrAccessGroupToken]) == -34018)
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, [kSecAttrAccessGroup: kSecAttrAccessGroupToken]) == -34018)
                }
            }
        },
        ChecklistRow(89, "while locked an add of the default class is -25308") { home in
            try home.lock()
            try home.calling { for item in both { #expect(add(item, secret("x")) == -25308) } }
            try home.unlock()
            try home.calling { for item in both { #expect(find(item).status == -25300) } }
        },
        ChecklistRow(90, "while unlocked it is right") { home in
            try home.lock()
            try home.unlock()
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
        },
        ChecklistRow(91, "while locked an add of what is there is -25308, not -25299") { home in
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.lock()
            try home.calling { for item in both { #expect(add(item, secret("y")) == -25308) } }
        },
        ChecklistRow(92, "while unlocked it is -25299") { home in
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.lock()
            try home.unlock()
            try home.calling { for item in both { #expect(add(item, secret("y")) == -25299) } }
        },
        ChecklistRow(93, "while locked, finding attributes or data is -25308") { home in
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.lock()
            try home.calling {
                for item in both {
                    for returned in [returnData, returnAttributes, returnData + returnAttributes] {
                        for limit in [[:], limitAll] as [Attributes] {
                            let found = find(item, returned + limit)
                            #expect(found.status == -25308)
                            #expect(found.object == nil)
                        }
                    }
                }
            }
        },
        ChecklistRow(99, "threads that add at once all succeed") { home in
            let keychain = try home.calling { try Keychain.currentService() }
            let statuses = concurrently(32) { thread in
                Keychain.$given.withValue(keychain) {
                    (0..<20).map { add(generic("\(thread) \($0)"), secret("\(thread)")) }
                }
            }
            #expect(statuses.joined().allSatisfy { $0 == 0 })
            try home.calling { #expect(count(kSecClassGenericPassword) == 640) }
        },
        ChecklistRow(102, "what is sealed and opened keeps its accessibility") { home in
            try home.calling {
                for accessibility in accessibilities {
                    let item = generic(accessibility as String)
                    #expect(add(item, secret("x") + [kSecAttrAccessible: accessibility]) == 0)
                    let found = find(item, returnAttributes + returnData).attributes
                    #expect(found?["pdmn"] as? String == accessibility as String)
                    #expect(found?["v_Data"] as? Data == Data("x".utf8))
                }
            }
        },
        ChecklistRow(104, "a credential reference among the attributes of an update is -25303") { home in
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, secret("y") + [NSString(string: "u_CredRef"): Data([1])]) == -25303)
                    #expect(find(item, returnData).text == "x")
                }
            }
        },
        ChecklistRow(105, "a malformed access control on add is -50, and nothing is stored") { home in
            try home.calling {
                for item in both {
                    for wrong: Any in ["ak", Data([0x30, 0]), 1, NSNull(), ["ak"]] {
                        #expect(add(item, secret("x") + [kSecAttrAccessControl: wrong]) == -50)
                    }
                    #expect(find(item).status == -25300)
                }
            }
        },
        ChecklistRow(107, "without a passcode an item that needs one is not found") { home in
            try home.calling { for item in both { #expect(add(item, secret("x") + whenPasscodeSet) == 0) } }
            try home.removePasscode()
            try home.calling { for item in both { #expect(find(item, returnData).status == -25300) } }
        },
        ChecklistRow(108, "without a passcode no item that needs one can be added: -25291") { home in
            try home.removePasscode()
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x") + whenPasscodeSet) == -25291)
                    #expect(find(item).status == -25300)
                    #expect(add(item, secret("x")) == 0)
                    #expect(update(item, whenPasscodeSet) == -25291)
                }
            }
        },
        ChecklistRow(109, "a new passcode does not bring them back, and adding them anew works") { home in
            try home.calling { for item in both { #expect(add(item, secret("x") + whenPasscodeSet) == 0) } }
            try home.removePasscode()
            try home.setPasscode()
            try home.calling {
                for item in both {
                    #expect(find(item, returnData).status == -25300)
                    #expect(add(item, secret("y") + whenPasscodeSet) == 0)
                    #expect(find(item, returnData).text == "y")
                }
            }
        },
        ChecklistRow(110, "leaving out what needs authentication is -50 on add and delete") { home in
            try home.calling {
                let skip: Attributes = [kSecUseAuthenticationUI: kSecUseAuthenticationUISkip]
                for item in both {
                    #expect(add(item, secret("x") + skip) == -50)
                    #expect(find(item).status == -25300)
                    #expect(add(item, secret("x")) == 0)
                    #expect(delete(item + skip) == -50)
                    #expect(find(item, returnData + skip).text == "x")
                }
            }
        },
        ChecklistRow(112, "each class with each accessibility is added, found and deleted") { home in
            try home.calling {
                for accessibility in accessibilities {
                    for item in both.map({ $0 + [kSecAttrAccessible: accessibility] }) {
                        #expect(add(item, secret("x")) == 0)
                        #expect(find(item, returnData).text == "x")
                        #expect(find(item.without(kSecAttrAccessible), returnData).text == "x")
                        #expect(delete(item) == 0)
                        #expect(find(item).status == -25300)
                    }
                }
            }
        },
        ChecklistRow(113, "synchronizable with constraints is -50, and nothing is stored") { home in
            try home.calling {
                let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil)
                let constrained: Attributes = [
                    kSecAttrAccessControl: try #require(control), kSecAttrSynchronizable: true,
                ]
                for item in both {
                    #expect(add(item, secret("x") + constrained) == -50)
                    #expect(find(item + [kSecAttrSynchronizable: kSecAttrSynchronizableAny]).status == -25300)
                }
            }
        },
        ChecklistRow(118, "items that need a passcode can be deleted when it is gone") { home in
            try home.calling { for item in both { #expect(add(item, secret("x") + whenPasscodeSet) == 0) } }
            try home.removePasscode()
            try home.calling {
                for item in both {
                    #expect(delete(item) == 0)
                    #expect(delete(item) == -25300)
                    #expect(add(item, secret("y")) == 0)
                }
            }
        },
    ]

    private static var whenPasscodeSet: Attributes {
        [kSecAttrAccessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly]
    }

    static var accessibilities: [CFString] {
        [
            kSecAttrAccessibleWhenUnlocked, kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessibleAlways,
            kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly,
        ]
    }

    private static func fill() throws {
        for number in 0..<3 {
            try #require(add(generic("\(number)"), secret("\(number)")) == 0)
            try #require(add(internet("\(number)"), secret("\(number)")) == 0)
        }
    }
}

/// Runs `body` on threads of their own, all at once, and returns what each returned.
func concurrently<R: Sendable>(_ threads: Int, _ body: @escaping @Sendable (Int) -> R) -> [R] {
    let results = Mutex<[Int: R]>([:])
    let group = DispatchGroup()
    for number in 0..<threads {
        group.enter()
        Thread.detachNewThread {
            let result = body(number)
            results.withLock { $0[number] = result }
            group.leave()
        }
    }
    group.wait()
    return results.withLock { results in (0..<threads).compactMap { results[$0] } }
}
