import Foundation
import ProtectionModel
import TestSupport
import Testing

@testable import AgentProtocol

/// The messages of `fixtures/agent/v1`, which a program in another language made from the page of the format.
@Suite struct GoldenMessageTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "fixtures/agent/v1")

    private static func packet(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appending(path: name)))
    }

    private static let lost = ProtectionError(.locked(.complete), "locked")
    private static let memory = AgentReply.NewMemory(
        epoch: 9, hasUsagePage: true, hasMark: true, slabPages: [1, 4, 64])

    private static let requests: [(String, AgentRequest, UInt32)] = [
        ("hello", .hello(lowestVersion: 1, highestVersion: 1, wantsMemory: true), 1),
        ("make-file-keys", .makeFileKeys(.complete, [.keyWasWeaker], count: 256, releases: MessageSamples.loans), 2),
        ("unwrap", .unwrap([MessageSamples.symmetric, MessageSamples.asymmetric], releases: MessageSamples.loans), 3),
        (
            "rewrap",
            .rewrap(MessageSamples.asymmetric, to: .complete, [.keyWasWeaker], releases: MessageSamples.loans), 4
        ),
        ("release", .release(MessageSamples.loans), 5), ("unlock", .unlock(passcodeSize: 13), 6),
        ("lock", .lock(.sleep), 7), ("status", .status, 8), ("subscribe", .subscribe, 9), ("stop", .stop, 10),
        ("reload", .reload, 11), ("open-keychain", .openKeychain, 12),
    ]

    private static let replies: [(String, AgentReply, UInt32)] = [
        ("reply-welcome", .welcome(version: 1, process: 99, keybag: MessageSamples.keybag), 1),
        (
            "reply-file-keys",
            .fileKeys(
                [
                    (MessageSamples.symmetric, MessageSamples.loans[0]),
                    (MessageSamples.asymmetric, MessageSamples.loans[1]),
                ], memory), 2
        ),
        ("reply-loans", .loans([.success(MessageSamples.loans[0]), .failure(lost)], memory), 3),
        ("reply-record", .record(MessageSamples.symmetric), 4),
        (
            "reply-lock-incomplete",
            .lockResult(
                LockReport(
                    outcome: .incomplete(holders: ["process 5"]),
                    openFiles: [LockReport.OpenFiles(process: 5, executable: "/usr/bin/e", count: 2)])), 7
        ),
        ("reply-lock-grace", .lockResult(LockReport(outcome: .graceRunning(seconds: 10))), 7),
        ("reply-status", .statusResult(MessageSamples.status), 8), ("reply-done", .done, 10),
        ("reply-keychain", .keychain, 12),
        ("event-state", .event(.state(.unlocked)), 0),
        ("event-will-lock", .event(.lock(.willLock(grace: 10), .idle)), 0),
        ("event-did-lock", .event(.lock(.didLock, nil)), 0), ("event-did-unlock", .event(.lock(.didUnlock, nil)), 0),
        ("failure-too-many-tries", .failure(ProtectionError(.tooManyTries(retryAfter: 300.5), "wait")), 6),
        ("failure-damaged", .failure(ProtectionError(.damaged(.unwrap), "damaged")), 3),
        ("failure-foreign", .failure(ProtectionError(.foreignKeybag(MessageSamples.keybag), "another's")), 3),
        ("failure-unsupported", .failure(ProtectionError(.unsupported, "no", reason: .hardLinks)), 3),
        ("failure-system", .failure(ProtectionError(.system(28), "full")), 3),
    ]

    @Test func requestsAreTheBytesThatTheirPageSays() throws {
        for (name, request, number) in Self.requests {
            let golden = try Self.packet("request-\(name)")
            let (frame, decoded) = try golden.withUnsafeBytes { try AgentRequest.decode($0) }
            #expect(decoded == request && frame.number == number, "\(name)")
            var packet = request.packet(number: number)
            if case .unlock = request { packet += Array("correct horse".utf8) }
            #expect(packet == golden, "\(name)")
        }
    }

    @Test func repliesAreTheBytesThatTheirPageSays() throws {
        for (name, reply, number) in Self.replies {
            let golden = try Self.packet(name)
            #expect(reply.packet(number: number) == golden, "\(name)")
            let (frame, decoded) = try golden.withUnsafeBytes { try AgentReply.decode($0) }
            #expect(frame.number == number && decoded.packet(number: number) == golden, "\(name)")
        }
    }

    @Test func everyGoldenMessageIsCompared() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(names) == Set(Self.requests.map { "request-\($0.0)" } + Self.replies.map(\.0)))
    }

    /// The fixtures are what the program of the page writes today.
    @Test func theProgramOfThePageWritesTheGoldenMessages() throws {
        let program = Self.folder.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "docs/formats/reader/agent_messages.py")
        let run = try Command.run("/usr/bin/python3", [program.path, "--list"])
        #expect(run.status == 0)
        let lines = run.outputText.split(separator: "\n")
        #expect(lines.count == Self.requests.count + Self.replies.count)
        for line in lines {
            let words = line.split(separator: " ").map(String.init)
            let hexadecimal = try Self.packet(words[0]).map { byte in
                let digits = String(byte, radix: 16)
                return digits.count == 1 ? "0" + digits : digits
            }.joined()
            #expect(words.count == 2 && hexadecimal == words[1], "\(words[0])")
        }
    }
}
