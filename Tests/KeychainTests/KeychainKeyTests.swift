import Foundation
import Keychain
import KeychainModel
import KeychainStore
import Synchronization
import Testing

private struct Account: Codable, Equatable, Sendable {
    var name: String
    var token: Data
}

extension KeychainKey where Value == Account {
    fileprivate static var account: KeychainKey {
        KeychainKey("account", service: "app", accessible: .afterFirstUnlock)
    }
}

extension KeychainKey where Value == String {
    fileprivate static var token: KeychainKey { KeychainKey("token", service: "app", accessible: .whenUnlocked) }
}

/// Another number each time.
private final class Counter: Sendable {
    private let value = Atomic<Int>(0)
    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}

@Suite struct KeychainKeyTests {
    @Test func valuesComeBackAsTheyWere() async throws {
        let keychain = try MemoryFixture().keychain
        let account = Account(name: "Ann", token: Data([1, 2, 3]))
        #expect(try await keychain.value(of: .account) == nil)
        try await keychain.set(account, for: .account)
        #expect(try await keychain.value(of: .account) == account)
        try await keychain.set("t\u{f6}ken", for: .token)
        #expect(try await keychain.value(of: .token) == "t\u{f6}ken")
        #expect(try await keychain.remove(.token))
        #expect(try await keychain.remove(.token) == false)
        #expect(try await keychain.value(of: .token) == nil)
        let items = try await keychain.items(of: GenericPassword.self, matching: .init(service: "app"))
        #expect(items.map(\.accessible) == [.afterFirstUnlock])
    }

    /// Other programs read what is stored: a text and bytes are not wrapped.
    @Test func textsAndBytesAreStoredAsTheyAre() async throws {
        let keychain = try MemoryFixture().keychain
        let item = GenericPassword(service: "s", account: "a")
        try await keychain.set("\"quoted\"", for: KeychainKey("a", service: "s", accessible: .always))
        #expect(try await keychain.bytes(item) == Array("\"quoted\"".utf8))
        try await keychain.set([0, 255], for: KeychainKey<[UInt8]>("a", service: "s", accessible: .always))
        #expect(try await keychain.bytes(item) == [0, 255])
        try await keychain.set(Data([9]), for: KeychainKey<Data>("a", service: "s", accessible: .always))
        #expect(try await keychain.bytes(item) == [9])
        try await keychain.set(
            Account(name: "n", token: Data()), for: KeychainKey("a", service: "s", accessible: .always))
        let stored = try #require(try await keychain.bytes(item))
        #expect(try JSONDecoder().decode(Account.self, from: Data(stored)).name == "n")
    }

    @Test func aSecretOfAnotherTypeIsAnErrorAndStays() async throws {
        let keychain = try MemoryFixture().keychain
        try await keychain.set("no JSON", for: KeychainKey<String>("account", service: "app", accessible: .always))
        #expect(await code { try await keychain.value(of: .account) } == .undecodable)
        let make: @Sendable () -> Account = { Account(name: "", token: Data()) }
        #expect(await code { try await keychain.value(of: .account, orCreate: make) } == .undecodable)
        #expect(try await keychain.text(GenericPassword(service: "app", account: "account")) == "no JSON")
    }

    @Test func manyThatAskForANewValueAtOnceGetTheSame() async throws {
        let service = LocalKeychain(
            KeychainStore.inMemory(),
            caller: Caller(applicationIdentifier: "t", accessGroups: ["t"], source: .configured))
        let made = Counter()
        let values = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<32 {
                // Keychains of their own, as other processes have.
                let keychain = try Keychain(.given(service))
                group.addTask {
                    try await keychain.value(of: .token, orCreate: { "\(made.next())" })
                }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(values.count == 1)
    }
}
