import Foundation
import KeychainModel
import Testing

@testable import AgentProtocol

/// The worked examples of docs/formats/keychain-protocol.md.
@Suite struct KeychainMessagePageTests {
    private static func example(_ name: String) throws -> [UInt8] {
        let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "docs/formats/keychain-protocol.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.firstRange(of: "```hex \(name)\n"))
        let end = try #require(text[start.upperBound...].firstRange(of: "```"))
        return try text[start.upperBound..<end.lowerBound].split(whereSeparator: \.isWhitespace).map {
            try #require(UInt8($0, radix: 16))
        }
    }

    /// All bytes of a message, secrets too.
    private static func bytes(_ message: KeychainMessage) -> [UInt8] {
        message.secrets.reduce(into: message.plain) { bytes, secret in
            secret.withUnsafeBytes { bytes.append(contentsOf: $0) }
        }
    }

    @Test func theExamplesAreTheBytesThatThePageSays() throws {
        let secret = try KeychainMessageTests.secret("pw")
        let add = KeychainRequest.add(["class": .text("genp"), "acct": .text("me"), "v_Data": .secret(secret)])
        #expect(Self.bytes(try KeychainMessage(add)) == (try Self.example("add")))
        #expect(Self.bytes(try KeychainMessage(.whoAmI)) == (try Self.example("whoAmI")))
        let caller = Caller(applicationIdentifier: "/bin/x", accessGroups: ["/bin/x"], source: .executable)
        let answer = KeychainReply.answer(KeychainAnswer(count: 0, caller: caller))
        #expect(Self.bytes(try KeychainMessage(answer)) == (try Self.example("answer")))
        let failure = KeychainReply.failure(KeychainError(.itemNotFound, "absent"))
        #expect(Self.bytes(try KeychainMessage(failure)) == (try Self.example("failure")))
    }
}
