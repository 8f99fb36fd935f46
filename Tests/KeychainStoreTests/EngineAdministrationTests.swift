import KeychainModel
import KeychainStore
import Testing

/// Lists, and what is done with whole access groups.
@Suite struct EngineAdministrationTests {
    private static let administrator = EngineFixture.administrator

    private func fill(_ keychain: EngineFixture, _ caller: Caller = EngineFixture.program) {
        for accessibility in Accessibility.allCases {
            for itemClass in ["genp", "inet"] {
                let text = ItemValue.text(accessibility.rawValue)
                #expect(
                    keychain.add(
                        ["class": .text(itemClass), "acct": text, "pdmn": text, "v_Data": secret("one")], as: caller
                    ).count == 1)
            }
        }
    }

    @Test(arguments: EngineHome.all) func aListShowsWhatIsLockedAsLocked(_ home: EngineHome) throws {
        let keychain = try home.make()
        fill(keychain)
        keychain.lock.lock()
        let results = keychain.ask(.list([:])).results
        #expect(results.count == 14, "KC-10: all classes, all items")
        for result in results {
            #expect(result.isLocked == result.accessibility.needsUnlocked)
            #expect((result.attributes == nil) == result.isLocked)
            #expect(result.secret == nil, "a list shows no secrets")
        }
        #expect(keychain.ask(.list(["class": "inet"])).count == 7)
        #expect(keychain.ask(.list(["svce": ""])).count == 7, "classes without the attribute have no part in it")
        #expect(keychain.ask(.list(["acct": "aku"])).results.allSatisfy { $0.isLocked })
        #expect(keychain.ask(.list(["acct": "nobody"])).count == 0, "nothing to list is no failure")
        #expect(keychain.ask(.list(["icmt": "x"])).code == .locked, "cannot be decided")
        #expect(keychain.ask(.list(["class": "genp", "svce": 1])).code == .malformed)
        #expect(keychain.ask(.list(["nokey": 1])).code == .malformed)
        #expect(keychain.ask(.list([:]), as: EngineFixture.stranger).count == 0)
        #expect(keychain.ask(.list([:]), as: Self.administrator).count == 14)
        keychain.lock.unlock()
        #expect(keychain.ask(.list([:])).results.allSatisfy { !$0.isLocked })
        #expect(keychain.ask(.list(["m_Limit": 9])).count == 9)
    }

    @Test(arguments: EngineHome.all) func purgingTakesOneGroupAndNothingElse(_ home: EngineHome) throws {
        let keychain = try home.make()
        fill(keychain)
        fill(keychain, EngineFixture.stranger)
        #expect(keychain.add(.generic(["acct": "gone", "sync": true])).count == 1)
        #expect(keychain.delete(.generic(["acct": "gone", "sync": true])).count == 1)
        #expect(keychain.ask(.purge(accessGroup: "org.example.app")).code == .missingEntitlement)
        keychain.lock.lock()
        #expect(keychain.ask(.purge(accessGroup: "org.example.app"), as: Self.administrator).count == 15)
        keychain.lock.unlock()
        #expect(keychain.ask(.list(["sync": "syna", "tomb": 1])).count == 0)
        #expect(keychain.ask(.list(["sync": "syna"])).count == 0)
        #expect(keychain.ask(.list([:]), as: EngineFixture.stranger).count == 14)
        #expect(keychain.ask(.purge(accessGroup: "org.example.app"), as: Self.administrator).count == 0)
    }

    @Test(arguments: EngineHome.all) func adoptingMovesAllOrNothing(_ home: EngineHome) throws {
        let keychain = try home.make()
        fill(keychain)
        let reference = try #require(keychain.find(.generic(["r_PersistentRef": true])).results.first?.reference)
        let request = KeychainRequest.adopt(from: "org.example.app", to: "org.example.other")
        #expect(keychain.ask(request).code == .missingEntitlement)
        keychain.lock.lock()
        #expect(keychain.ask(request, as: Self.administrator).code == .locked)
        #expect(keychain.ask(.list([:])).count == 14, "nothing moved")
        keychain.lock.unlock()
        let clash = ItemDictionary.internet(["acct": "dku"])
        #expect(keychain.add(clash, as: EngineFixture.stranger).count == 1)
        #expect(keychain.ask(request, as: Self.administrator).code == .duplicateItem)
        #expect(keychain.ask(.list([:])).count == 14, "nothing moved")
        #expect(keychain.delete(clash, as: EngineFixture.stranger).count == 1)
        #expect(keychain.ask(request, as: Self.administrator).count == 14)
        #expect(keychain.ask(.list([:])).count == 0)
        let found = keychain.find(
            ["v_PersistentRef": .data(reference.bytes), "r_Data": true], as: EngineFixture.stranger)
        #expect(found.results.first?.secret?.textForTests == "one", "references stay")
        for target in ["", "*", "com.apple.token", "org.example.app"] {
            #expect(
                keychain.ask(.adopt(from: "org.example.app", to: target), as: Self.administrator).code == .malformed)
        }
    }

    @Test func everybodyIsToldWhoTheyAre() throws {
        let keychain = EngineFixture()
        let local = LocalKeychain(keychain.store, caller: EngineFixture.stranger)
        let answer = try local.perform(.whoAmI).answer
        #expect(answer.caller == EngineFixture.stranger)
    }

    /// Messages name keys and rules, and never what somebody has stored or asked for.
    @Test func messagesHoldNoValues() throws {
        let keychain = EngineFixture()
        let hidden = "hunter2-private"
        let item = ItemDictionary.generic([
            "acct": .text(hidden), "svce": .text(hidden), "v_Data": secret(hidden),
        ])
        let group = ItemValue.text(hidden)
        let requests: [KeychainRequest] = [
            .add(item), .add(item), .find(item.with(["labl": group])), .find(["class": group]),
            .add(item.with(["port": group])), .add(item.with(["agrp": group])), .add(item.with(["m_Limit": group])),
            .update(item, to: ["agrp": group]), .update(item, to: ["crtr": group]), .delete(item.with(["pdmn": group])),
            .find(item.with(["u_AuthUI": group])), .find(item.with([hidden + " " + hidden: 1])),
            .adopt(from: hidden, to: hidden), .purge(accessGroup: hidden),
        ]
        var refusals = 0
        for request in requests {
            do throws(KeychainError) {
                _ = try keychain.store.perform(request, as: EngineFixture.program) { _ in }
            } catch {
                refusals += 1
                #expect(!error.description.contains(hidden), "\(error)")
                #expect(
                    error.message.count > 15 && error.message.first?.isUppercase == false && error.message.last != ".")
            }
        }
        #expect(refusals == requests.count - 1)
    }

    @Test func aDuplicateSaysWhichAttributesClash() throws {
        let keychain = EngineFixture()
        #expect(keychain.add(.generic()).count == 1)
        do throws(KeychainError) {
            _ = try keychain.store.perform(.add(.generic()), as: EngineFixture.program) { _ in }
        } catch {
            for word in ["acct", "svce", "agrp", "sync", "update"] { #expect(error.message.contains(word)) }
            // Whoever asks, by whatever calls, reads it.
            #expect(!error.message.contains("SecItem"))
            return
        }
        Issue.record("a duplicate was added")
    }
}
