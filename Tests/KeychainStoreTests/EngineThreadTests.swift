import KeychainModel
import KeychainStore
import Synchronization
import TestSupport
import Testing

/// Many threads on one keychain.
@Suite struct EngineThreadTests {
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }

    @Test(arguments: EngineHome.all) func everyAddCounts(_ home: EngineHome) async throws {
        let keychain = try home.make()
        let store = keychain.store
        await withTaskGroup(of: Int.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var added = 0
                    for index in 0..<100 {
                        let own = ItemDictionary.generic(["acct": .text("\(worker)-\(index)"), "v_Data": secret("x")])
                        let common = ItemDictionary.generic(["acct": .text("common-\(index)"), "v_Data": secret("x")])
                        for item in [own, common] {
                            do throws(KeychainError) {
                                _ = try store.perform(.add(item), as: EngineFixture.program) { _ in }
                                added += 1
                            } catch {
                                #expect(error.code == .duplicateItem, "99: \(error)")
                            }
                        }
                    }
                    return added
                }
            }
            let added = await group.reduce(0, +)
            #expect(added == 900, "each worker's own items, and each common item once")
        }
        #expect(keychain.ask(.list([:])).count == 900)
    }

    /// Writers keep the sum of all numbers: a reader that sees another has seen two states in one.
    @Test(arguments: EngineHome.all) func aReaderSeesOneState(_ home: EngineHome) async throws {
        let keychain = try home.make()
        let store = keychain.store
        for number in 0..<100 {
            #expect(keychain.add(.generic(["acct": .text("\(number)"), "icmt": "even"])).count == 1)
        }
        let isDone = Flag()
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for round in 0..<60 {
                    let wanted: ItemValue = round % 2 == 0 ? "odd" : "even"
                    _ = try? store.perform(.update(.generic(), to: ["icmt": wanted]), as: EngineFixture.program) { _ in
                    }
                }
                isDone.set()
            }
            for _ in 0..<3 {
                group.addTask {
                    while !isDone.isSet {
                        var seen: Set<String> = []
                        var count = 0
                        let all = ItemDictionary.generic(["r_Attributes": true, "m_Limit": "m_LimitAll"])
                        do throws(KeychainError) {
                            _ = try store.perform(.find(all), as: EngineFixture.program) {
                                (result) throws(KeychainError) in
                                count += 1
                                if case .text(let text)? = result.attributes?["icmt"] { seen.insert(text) }
                            }
                        } catch { Issue.record("\(error)") }
                        #expect(seen.count == 1 && count == 100, "\(seen), \(count) items")
                        await Task.yield()
                    }
                }
            }
        }
    }

    /// What is handed over may block for as long as it likes: others write meanwhile.
    @Test(arguments: EngineHome.all) func handingOverHoldsNobodyUp(_ home: EngineHome) throws {
        let keychain = try home.make()
        let store = keychain.store
        let item = ItemDictionary.generic(["acct": "a", "v_Data": secret("x"), "r_Data": true])
        var inner = 0
        _ = try store.perform(.add(item), as: EngineFixture.program) { (_) throws(KeychainError) in
            inner += try store.perform(.add(.generic(["acct": "b"])), as: EngineFixture.program) { _ in }.count
        }
        let all = ItemDictionary.generic(["r_Data": true, "m_Limit": "m_LimitAll"])
        var names = 0
        _ = try store.perform(.find(all), as: EngineFixture.program) { (_) throws(KeychainError) in
            names += 1
            let new = ItemDictionary.generic(["acct": .text("new \(names)")])
            inner += try store.perform(.add(new), as: EngineFixture.program) { _ in }.count
        }
        #expect(names == 2, "what is added meanwhile is not of the state that is read")
        #expect(inner == 3)
    }
}
