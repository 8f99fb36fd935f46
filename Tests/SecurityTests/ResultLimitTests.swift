import Keychain
import KeychainModel
import KeychainStore
import Security
import Testing

@Suite struct ResultLimitTests {
    /// One rule reads the limit and the return keys where the items are and where the answer is shaped.
    @Test func numbersOfAnyKindCountAlikeOnBothSides() throws {
        let store = KeychainStore.inMemory(SimulatedLock())
        let keychain = LocalKeychain(
            store, caller: Caller(applicationIdentifier: "a", accessGroups: ["a"], source: .configured))
        Keychain.$given.withValue(keychain) {
            for number in 0..<3 { #expect(add(generic("\(number)"), [kSecValueData: Data("\(number)".utf8)]) == 0) }
            let query: Attributes = [kSecClass: kSecClassGenericPassword]
            for (limit, count) in [
                (-1, 3), (-1.5, 3), (2, 2), (2.9, 2), (NSNumber(value: UInt64.max), 3), (kSecMatchLimitAll, 3),
            ] as [(Any, Int)] {
                for yes in [true, 1, 0.5, NSNumber(value: -1)] as [Any] {
                    let found = find(query + [kSecMatchLimit: limit, kSecReturnData: yes])
                    #expect((found.object as? [Data])?.count == count, "\(limit) \(yes)")
                }
            }
            for limit in [0, 1, 1.5, -0.5, kSecMatchLimitOne] as [Any] {
                #expect(find(query + [kSecMatchLimit: limit, kSecReturnData: 0.5]).data?.count == 1, "\(limit)")
            }
            for no in [false, 0, 0.0] as [Any] {
                let found = find(query + [kSecMatchLimit: -1, kSecReturnData: no])
                #expect(found.status == 0 && found.object == nil, "\(no)")
            }
        }
    }
}
