import AgentClient
import AgentProtocol
import Glibc
import KeychainModel
import KeychainStore
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

@testable import AgentServer
@testable import Keybag

/// Words for tests of the keychain through an agent.
enum KeychainWords {
    static func secret(_ text: String) throws(KeychainError) -> ItemSecret {
        try Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(KeychainError) in try ItemSecret(copying: bytes) }
        }.get()
    }

    static func text(_ secret: ItemSecret?) -> String? {
        secret.map { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// A generic password.
    static func item(
        _ account: String, _ secret: String? = nil, _ more: ItemDictionary = [:]
    ) throws(KeychainError) -> ItemDictionary {
        var item: ItemDictionary = ["class": .text("genp"), "svce": .text("service"), "acct": .text(account)]
        if let secret { item["v_Data"] = .secret(try Self.secret(secret)) }
        return item.merging(more) { $1 }
    }

    /// The code of what a request throws; nil when it does not.
    static func code(_ keychain: some KeychainService, _ request: KeychainRequest) -> KeychainError.Code? {
        do throws(KeychainError) {
            try keychain.perform(request) { _ in }
            return nil
        } catch { return error.code }
    }

    static func find(_ keychain: some KeychainService, _ account: String) throws(KeychainError) -> String? {
        let found = try keychain.perform(.find(item(account, nil, ["r_Data": .boolean(true)])))
        return text(found.results.first?.secret)
    }
}

/// A store whose answers a test decides.
final class ScriptedStore: KeychainServer.Store {
    typealias Script =
        @Sendable (KeychainRequest, Caller, (ItemResult) throws(KeychainError) -> Void) throws(KeychainError) ->
        KeychainAnswer

    private let script: Script

    init(_ script: @escaping Script) { self.script = script }

    func perform(
        _ request: KeychainRequest, as caller: Caller, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer { try script(request, caller, each) }

    func accessGroups() throws(KeychainError) -> [String] { [] }

    /// A result with a secret.
    static func result(
        _ secret: ItemSecret?, _ accessibility: Accessibility = .afterFirstUnlock
    ) -> ItemResult {
        ItemResult(
            itemClass: .genericPassword,
            reference: PersistentReference(.genericPassword, identifier: [UInt8](repeating: 7, count: 16))!,
            secret: secret, accessGroup: "g", accessibility: accessibility)
    }
}

/// A keychain connection without a client that protects its user from itself.
final class RawKeychain {
    let descriptor: Int32
    let stream: KeychainStream
    private let calls = LinuxInterprocessCalls.shared

    /// Asks an agent for a connection, over one of its own.
    init(_ client: RawClient, patience: Double = 30) throws {
        let number = try client.send(.openKeychain)
        let message = try client.receive()
        guard message.number == number, case .keychain = message.reply, message.descriptors.count == 1 else {
            throw RawClient.Unexpected(reply: message.reply)
        }
        descriptor = message.descriptors[0]
        stream = KeychainStream(Descriptor(descriptor, LinuxSystemCalls.shared), calls, patience: patience)
    }

    func reply() throws -> KeychainReply {
        let received = try stream.receive(milliseconds: 30_000)
        return try received.body.withUnsafeBytes { body in
            Result { () throws(MalformedMessage) in
                try KeychainMessage.reply(received.head, body, received.secrets)
            }
        }.get()
    }

    func send(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            done += try bytes.withUnsafeBytes { bytes in
                try calls.sendSome(descriptor, [UnsafeRawBufferPointer(rebasing: bytes[done...])])
            }
        }
    }

    /// True when the other end hangs up without another word.
    func isHungUp() throws -> Bool {
        do {
            _ = try stream.receive(milliseconds: 30_000)
            return false
        } catch KeychainStreamTrouble.ended { return true }
    }
}
