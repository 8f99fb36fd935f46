import KeychainModel
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import AgentProtocol

/// Messages of the keychain connection: what is written is read, and nothing else is.
@Suite struct KeychainMessageTests {
    static func secret(_ text: String) throws -> ItemSecret {
        try Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(KeychainError) in try ItemSecret(copying: bytes) }
        }.get()
    }

    /// Every kind of value, and some of each within another.
    static func everything() throws -> ItemDictionary {
        [
            "": .null, "text": .text("a\u{0}é👍"), "empty": .text(""), "data": .data([0, 255]), "none": .data([]),
            "low": .number(.min), "high": .number(.max), "real": .real(-0.0), "nan": .real(.nan),
            "yes": .boolean(true), "no": .boolean(false), "date": .date(1.5), "v_Data": .secret(try secret("s3cret")),
            "bare": .secret(ItemSecret()),
            "accc": .accessControl(try AccessControl(.whenUnlocked, [.userPresence])),
            "list": .list([.text("a"), .list([]), .dictionary([:]), .secret(try secret("inner"))]),
            "dictionary": .dictionary(["b": .number(1), "a": .null]), "foreign": .foreign("NSURL"),
        ]
    }

    static func requests() throws -> [KeychainRequest] {
        let all = try everything()
        return [
            .add([:]), .add(all), .find(all), .update(all, to: ["x": .number(1)]), .update([:], to: all), .delete(all),
            .list([:]), .purge(accessGroup: ""), .purge(accessGroup: "group\n"), .adopt(from: "/a", to: "b"), .whoAmI,
        ]
    }

    static func replies() throws -> [KeychainReply] {
        let reference = try #require(PersistentReference(.internetPassword, identifier: 1...16))
        var replies: [KeychainReply] = [.welcome, .answer(KeychainAnswer(count: 0)), .answer(KeychainAnswer(count: 7))]
        for accessibility in Accessibility.allCases {
            replies.append(
                .result(
                    ItemResult(
                        itemClass: .internetPassword, reference: reference, attributes: try everything(),
                        secret: try secret("p"), accessGroup: "a.b", accessibility: accessibility)))
        }
        replies.append(
            .result(
                ItemResult(
                    itemClass: .identity, reference: reference, accessGroup: "", accessibility: .always, isLocked: true)
            ))
        for source in Caller.Source.allCases {
            replies.append(
                .answer(
                    KeychainAnswer(
                        count: 1,
                        caller: Caller(
                            applicationIdentifier: source == .script ? nil : "id", accessGroups: ["a", "b"],
                            holdsAllGroups: source == .administrator, source: source))))
        }
        replies += KeychainError.Code.allCases.map { .failure(KeychainError($0, "because")) }
        return replies
    }

    /// The pieces of a message as they would come.
    static func parts(
        _ message: KeychainMessage
    ) throws -> (head: KeychainMessage.Head, body: [UInt8], secrets: [ItemSecret]) {
        let head = try Self.head(Array(message.plain.prefix(KeychainMessage.headSize)))
        return (head, Array(message.plain.dropFirst(KeychainMessage.headSize)), message.secrets)
    }

    static func head(_ bytes: [UInt8]) throws -> KeychainMessage.Head {
        try bytes.withUnsafeBytes { bytes in
            Result { () throws(MalformedMessage) in try KeychainMessage.Head(decoding: bytes) }
        }.get()
    }

    static func request(
        _ head: KeychainMessage.Head, _ body: [UInt8], _ secrets: [ItemSecret]
    ) throws -> KeychainRequest {
        try body.withUnsafeBytes { body in
            Result { () throws(MalformedMessage) in try KeychainMessage.request(head, body, secrets) }
        }.get()
    }

    static func reply(_ head: KeychainMessage.Head, _ body: [UInt8], _ secrets: [ItemSecret]) throws -> KeychainReply {
        try body.withUnsafeBytes { body in
            Result { () throws(MalformedMessage) in try KeychainMessage.reply(head, body, secrets) }
        }.get()
    }

    @Test func requestsComeBackAsTheyWere() throws {
        for request in try Self.requests() {
            let message = try KeychainMessage(request)
            let (head, body, secrets) = try Self.parts(message)
            let again = try KeychainMessage(try Self.request(head, body, secrets))
            #expect(again.plain == message.plain)
            #expect(again.secrets.count == message.secrets.count)
            #expect(zip(again.secrets, message.secrets).allSatisfy { $0.equals($1) })
            #expect(throws: MalformedMessage.self) { try Self.reply(head, body, secrets) }
        }
    }

    @Test func repliesComeBackAsTheyWere() throws {
        for reply in try Self.replies() {
            let message = try KeychainMessage(reply)
            let (head, body, secrets) = try Self.parts(message)
            let again = try KeychainMessage(try Self.reply(head, body, secrets))
            #expect(again.plain == message.plain)
            #expect(zip(again.secrets, message.secrets).allSatisfy { $0.equals($1) })
            #expect(throws: MalformedMessage.self) { try Self.request(head, body, secrets) }
        }
    }

    /// The secret rule, for the message itself.
    @Test func secretsAreNowhereInTheRestOfAMessage() throws {
        let text = "a secret that stands nowhere else"
        let message = try KeychainMessage(.add(["v_Data": .secret(try Self.secret(text)), "acct": .text("acct name")]))
        #expect(!String(decoding: message.plain, as: UTF8.self).contains(text))
        #expect(String(decoding: message.plain, as: UTF8.self).contains("acct name"), "the look is blind")
        #expect(message.secrets.map(\.count) == [text.utf8.count])
    }

    /// A message that ends anywhere else, or goes on, is none.
    @Test func everyCutAndEveryAdditionIsRefused() throws {
        let message = try KeychainMessage(.add(try Self.everything()))
        let (_, body, secrets) = try Self.parts(message)
        func isRefused(_ body: [UInt8], _ secrets: [ItemSecret]) throws -> Bool {
            var wire = WireWriter()
            wire.number(UInt32(body.count))
            wire.number(UInt32(secrets.reduce(0) { $0 + $1.count }))
            wire.number(KeychainMessage.version)
            wire.number(KeychainMessage.Kind.add.rawValue)
            wire.number(UInt16(secrets.count))
            wire.number(UInt32(0))
            do {
                _ = try Self.request(try Self.head(wire.bytes), body, secrets)
                return false
            } catch is MalformedMessage { return true }
        }
        #expect(try !isRefused(body, secrets), "the whole is refused too")
        for count in 0..<body.count { #expect(try isRefused(Array(body.prefix(count)), secrets), "\(count)") }
        #expect(try isRefused(body + [0], secrets))
        #expect(try isRefused(body, Array(secrets.dropLast())))
        #expect(try isRefused(body, secrets + [ItemSecret()]))
        #expect(try isRefused(body, secrets.reversed()))
    }

    /// No byte of a message can be another without being refused or saying something else.
    @Test func everyChangedByteIsRefusedOrSaysSomethingElse() throws {
        let message = try KeychainMessage(.add(["acct": .text("me"), "v_Data": .secret(try Self.secret("x"))]))
        for index in message.plain.indices {
            for bit in 0..<8 {
                var plain = message.plain
                plain[index] ^= 1 << bit
                guard let head = try? Self.head(Array(plain.prefix(KeychainMessage.headSize))),
                    let request = try? Self.request(
                        head, Array(plain.dropFirst(KeychainMessage.headSize)), message.secrets)
                else { continue }
                #expect(try KeychainMessage(request).plain == plain, "byte \(index), bit \(bit)")
            }
        }
    }

    @Test func headsBeyondTheLimitsAreRefused() throws {
        func head(
            body: UInt32 = 8, secrets: UInt32 = 0, version: UInt8 = 1, kind: UInt8 = 1, count: UInt16 = 0,
            zero: UInt32 = 0
        ) -> [UInt8] {
            var wire = WireWriter()
            wire.number(body)
            wire.number(secrets)
            wire.number(version)
            wire.number(kind)
            wire.number(count)
            wire.number(zero)
            return wire.bytes
        }
        #expect(try Self.head(head()).bodySize == 8)
        let most = UInt32(KeychainMessage.maximumSize - KeychainMessage.headSize)
        #expect(try Self.head(head(body: most)).bodySize == Int(most))
        for bad in [
            head(body: most + 1), head(body: 8, secrets: most), head(body: .max, secrets: .max), head(version: 0),
            head(version: 2), head(kind: 0), head(kind: 0x7F), head(body: 100, count: 17), head(body: 3, count: 1),
            head(zero: 1), Array(head().dropLast()), head() + [0],
        ] {
            #expect(throws: MalformedMessage.self) { try Self.head(bad) }
        }
    }

    @Test func requestsThatAreTooLargeAreRefusedWhereTheyAreMade() throws {
        func code(_ dictionary: ItemDictionary) -> KeychainError.Code? {
            do throws(KeychainError) {
                _ = try KeychainMessage(.add(dictionary))
                return nil
            } catch { return error.code }
        }
        let half = String(repeating: "x", count: KeychainMessage.maximumSize / 2)
        #expect(code(["a": .text(half)]) == nil)
        #expect(code(["a": .text(half), "b": .text(half)]) == .malformed)
        #expect(code(["a": .list([ItemValue](repeating: .null, count: 4095))]) == nil)
        #expect(code(["a": .list([ItemValue](repeating: .null, count: 4096))]) == .malformed)
        var deep = ItemValue.null
        for _ in 0..<6 { deep = .list([deep]) }
        #expect(code(["a": deep]) == nil)
        #expect(code(["a": .list([.list([deep])])]) == .malformed)
        let secret = try Self.secret("s")
        #expect(code(["a": .list([ItemValue](repeating: .secret(secret), count: 16))]) == nil)
        #expect(code(["a": .list([ItemValue](repeating: .secret(secret), count: 17))]) == .malformed)
    }

    /// Texts that Swift takes for equal are two keys to nobody.
    @Test func keysHaveOneOrderAndStandOnce() throws {
        func dictionary(_ keys: [String]) -> [UInt8] {
            var writer = ItemWriter()
            writer.wire.number(UInt16(keys.count))
            for key in keys {
                writer.longText(key)
                writer.value(.null)
            }
            return writer.wire.bytes
        }
        func isRefused(_ keys: [String]) throws -> Bool {
            let body = dictionary(keys)
            var head = WireWriter()
            head.number(UInt32(body.count))
            head.number(UInt32(0))
            head.number(UInt16(0x0201))
            head.number(UInt16(0))
            head.number(UInt32(0))
            do {
                _ = try Self.request(try Self.head(head.bytes), body, [])
                return false
            } catch is MalformedMessage { return true }
        }
        #expect(try !isRefused(["a", "b"]))
        #expect(try isRefused(["b", "a"]))
        #expect(try isRefused(["a", "a"]))
        #expect(try isRefused(["e\u{301}", "\u{e9}"]))
    }
}
