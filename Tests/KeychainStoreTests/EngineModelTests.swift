import Glibc
import KeychainModel
import KeychainStore
import TestSupport
import Testing

/// Random calls, random lock states, and after each the answer that a simple list of items gives.
@Suite struct EngineModelTests {
    private static let steps = getenv("CANDADO_LONG") == nil ? 20_000 : 200_000

    @Test(arguments: EngineHome.all) func answersAreThoseOfASimpleList(_ home: EngineHome) throws {
        for seed: UInt64 in 1...5 {
            var run = Run(try home.make(), seed: seed)
            for step in 0..<Self.steps / 5 {
                run.step()
                if let difference = run.difference {
                    Issue.record("seed \(seed), step \(step): \(difference)")
                    return
                }
            }
            #expect(run.codes.count >= 6, "the calls met too few kinds of answers: \(run.codes)")
        }
    }

    private struct Run {
        let keychain: EngineFixture
        var random: DeterministicRandom
        var model = EngineModel()
        var codes: [String: Int] = [:]
        var difference: String?

        let groups = EngineFixture.program.accessGroups

        init(_ keychain: EngineFixture, seed: UInt64) {
            self.keychain = keychain
            random = DeterministicRandom(seed: seed)
        }

        mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

        mutating func pick<T>(_ values: [T]) -> T { values[Int.random(in: 0..<values.count, using: &random)] }

        mutating func attributes(_ itemClass: String, _ percent: Int) -> [String: String] {
            var attributes: [String: String] = [:]
            for key in ["acct", itemClass == "genp" ? "svce" : "srvr", "labl", "icmt"] {
                if chance(key == "icmt" ? percent / 3 : percent) { attributes[key] = pick(["", "a", "b", "c"]) }
            }
            return attributes
        }

        mutating func compare(_ call: String, _ model: KeychainError.Code?, _ outcome: EngineFixture.Outcome) {
            codes[outcome.code?.rawValue ?? "done", default: 0] += 1
            if outcome.code != model { difference = "\(call) is \(outcome), should be \(model?.rawValue ?? "done")" }
        }

        mutating func step() {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<10: changeState()
            case 10..<50: add()
            case 50..<75: find()
            case 75..<90: update()
            default: delete()
            }
        }

        mutating func changeState() {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<6:
                keychain.lock.lock()
                if model.hasPasscode, model.state == .unlocked { model.state = .locked }
            case 6:
                keychain.lock.restart()
                model.state = model.hasPasscode ? .beforeFirstUnlock : .unlocked
            case 7:
                // Whoever removes or sets a passcode has given one.
                keychain.lock.unlock()
                keychain.lock.removePasscode()
                if model.hasPasscode { model.passcode += 1 }
                model.hasPasscode = false
                model.state = .unlocked
            case 8, 9:
                keychain.lock.setPasscode()
                model.hasPasscode = true
            default:
                keychain.lock.unlock()
                model.state = .unlocked
            }
        }

        mutating func add() {
            let itemClass = pick(["genp", "inet"])
            let group = chance(20) ? groups[1] : nil
            let item = EngineModel.Item(
                attributes: attributes(itemClass, 60), itemClass: itemClass, group: group ?? groups[0],
                isSynchronizable: chance(20), accessibility: pick(Accessibility.allCases),
                secret: chance(80) ? pick(["", "one", "two"]) : nil)
            var dictionary = Self.dictionary(itemClass, item.attributes)
            dictionary["agrp"] = group.map { .text($0) }
            if item.isSynchronizable { dictionary["sync"] = true }
            dictionary["pdmn"] = .text(item.accessibility.rawValue)
            dictionary["v_Data"] = item.secret.map { KeychainStoreTests.secret($0) }
            compare("add", model.add(item), keychain.add(dictionary))
        }

        mutating func query(_ percent: Int) -> (EngineModel.Query, ItemDictionary) {
            let itemClass = pick(["genp", "inet"])
            var query = EngineModel.Query(itemClass: itemClass, attributes: attributes(itemClass, percent))
            query.isSynchronizable = pick([false, false, true, nil])
            if chance(20) { query.group = pick(groups) }
            if chance(20) { query.accessibility = pick(Accessibility.allCases) }
            if query.isSynchronizable == true, query.accessibility?.isThisDeviceOnly == true {
                query.accessibility = nil
            }
            var dictionary = Self.dictionary(itemClass, query.attributes)
            dictionary["agrp"] = query.group.map { .text($0) }
            dictionary["pdmn"] = query.accessibility.map { .text($0.rawValue) }
            dictionary["sync"] = query.isSynchronizable.map { .boolean($0) } ?? "syna"
            return (query, dictionary)
        }

        mutating func find() {
            var (query, dictionary) = query(50)
            query.isLimited = chance(50)
            if !query.isLimited { dictionary["m_Limit"] = "m_LimitAll" }
            dictionary["r_Data"] = true
            dictionary["r_Attributes"] = chance(50) ? true : nil
            let outcome = keychain.find(dictionary)
            switch model.find(query, groups) {
            case .failure(let failure): compare("find", failure.code, outcome)
            case .success(let items):
                compare("find", nil, outcome)
                // An update leaves an item in its place, and so does the list.
                let expected = items.map { $0.secret ?? "none" }
                let found = outcome.results.map { $0.secret?.textForTests ?? "none" }
                if expected != found { difference = "find gives \(found), should be \(expected)" }
                let accessibilities = outcome.results.map(\.accessibility)
                if accessibilities != items.map(\.accessibility) { difference = "find gives \(accessibilities)" }
            }
        }

        mutating func update() {
            let (query, dictionary) = query(60)
            var change = EngineModel.Change(attributes: attributes(query.itemClass, 20))
            if chance(10) { change.group = pick(groups) }
            if chance(10) { change.isSynchronizable = chance(50) }
            if chance(30) { change.accessibility = pick(Accessibility.allCases) }
            if chance(50) { change.secret = pick(["three", "four"]) }
            var changes: ItemDictionary = change.attributes.mapValues { .text($0) }
            changes["agrp"] = change.group.map { .text($0) }
            changes["sync"] = change.isSynchronizable.map { .boolean($0) }
            changes["pdmn"] = change.accessibility.map { .text($0.rawValue) }
            changes["v_Data"] = change.secret.map { KeychainStoreTests.secret($0) }
            guard !changes.isEmpty else { return }
            let outcome = keychain.update(dictionary, to: changes)
            switch model.update(query, change, groups) {
            case .failure(let failure): compare("update", failure.code, outcome)
            case .success(let count):
                compare("update", nil, outcome)
                if outcome.count != count { difference = "update changes \(outcome.count), should be \(count)" }
            }
        }

        mutating func delete() {
            var (query, dictionary) = query(70)
            if chance(70) { query.attributes["icmt"] = nil }
            if query.attributes["icmt"] == nil { dictionary["icmt"] = nil }
            let leavesTombstone: Bool? = pick([nil, nil, true, false])
            dictionary["u_Tomb"] = leavesTombstone.map { .boolean($0) }
            let outcome = keychain.delete(dictionary)
            switch model.delete(query, leavesTombstone: leavesTombstone, groups) {
            case .failure(let failure): compare("delete", failure.code, outcome)
            case .success(let count):
                compare("delete", nil, outcome)
                if outcome.count != count { difference = "delete removes \(outcome.count), should be \(count)" }
            }
        }

        static func dictionary(_ itemClass: String, _ attributes: [String: String]) -> ItemDictionary {
            attributes.mapValues { ItemValue.text($0) }.with(["class": .text(itemClass)])
        }
    }
}
