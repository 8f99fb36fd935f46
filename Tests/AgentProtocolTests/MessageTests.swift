import ProtectionModel
import Testing

@testable import AgentProtocol

@Suite struct MessageTests {
    private static func decodeRequest(_ packet: [UInt8]) -> Result<AgentRequest, MalformedMessage> {
        packet.withUnsafeBytes { bytes in
            Result { () throws(MalformedMessage) in try AgentRequest.decode(bytes).request }
        }
    }

    private static func decodeReply(_ packet: [UInt8]) -> Result<AgentReply, MalformedMessage> {
        packet.withUnsafeBytes { bytes in Result { () throws(MalformedMessage) in try AgentReply.decode(bytes).reply } }
    }

    @Test func everyKindOfMessageHasASample() {
        let kinds = Set(MessageSamples.requests.map(\.kind) + MessageSamples.replies.map(\.kind))
        #expect(kinds == Set(AgentFrame.Kind.allCases))
    }

    @Test func whatIsEncodedDecodesToTheSame() throws {
        for (request, packet) in zip(MessageSamples.requests, MessageSamples.requestPackets) {
            #expect(try Self.decodeRequest(packet).get() == request)
            #expect(packet.count <= AgentFrame.maximumSize)
        }
        for packet in MessageSamples.replyPackets {
            #expect(try Self.decodeReply(packet).get().packet(number: 5) == packet)
            #expect(packet.count <= AgentFrame.maximumSize)
        }
    }

    @Test func errorsKeepTheirCodeReasonAndSentence() throws {
        for error in MessageSamples.errors {
            guard case .failure(let back) = try Self.decodeReply(AgentReply.failure(error).packet(number: 1)).get()
            else {
                Issue.record("\(error)")
                continue
            }
            #expect(back.code == error.code && back.reason == error.reason && back.message == error.message)
        }
    }

    @Test func everyCutOfEveryMessageIsRefused() {
        for packet in MessageSamples.requestPackets + MessageSamples.replyPackets {
            for count in 0..<packet.count {
                // With the size as it was, and with the size of what is left.
                var cut = Array(packet[..<count])
                #expect((try? Self.decodeRequest(cut).get()) == nil && (try? Self.decodeReply(cut).get()) == nil)
                guard count >= AgentFrame.headSize else { continue }
                cut.withUnsafeMutableBytes { $0.storeBytes(of: UInt32(count).littleEndian, as: UInt32.self) }
                #expect((try? Self.decodeRequest(cut).get()) == nil && (try? Self.decodeReply(cut).get()) == nil)
            }
        }
    }

    @Test func bytesBehindAMessageAreRefused() {
        for packet in MessageSamples.requestPackets + MessageSamples.replyPackets {
            var longer = packet + [0]
            longer.withUnsafeMutableBytes {
                $0.storeBytes(of: UInt32($0.count).littleEndian, as: UInt32.self)
            }
            #expect((try? Self.decodeRequest(longer).get()) == nil && (try? Self.decodeReply(longer).get()) == nil)
        }
    }

    /// A changed byte is refused, or means something else that encodes back to exactly these bytes.
    @Test func whateverDecodesEncodesBackToTheSameBytes() throws {
        for packet in MessageSamples.requestPackets + MessageSamples.replyPackets where packet.count < 4000 {
            for index in packet.indices {
                for flip: UInt8 in [0x01, 0x80, 0xFF] {
                    var changed = packet
                    changed[index] ^= flip
                    let number = changed.withUnsafeBytes {
                        UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
                    }
                    if case .success(let request) = Self.decodeRequest(changed) {
                        // The version of a greeting is read whatever it is; the passcode is not part of what was decoded.
                        guard index != 4, index != 5 else { continue }
                        let again = request.packet(number: number)
                        #expect(Array(changed.prefix(again.count)) == again)
                    } else if case .success(let reply) = Self.decodeReply(changed), index != 4, index != 5 {
                        #expect(reply.packet(number: number) == changed)
                    }
                }
            }
        }
    }

    @Test func aGreetingOfANewerVersionIsStillRead() throws {
        var packet = AgentRequest.hello(lowestVersion: 2, highestVersion: 9, wantsMemory: true).packet(number: 1)
        packet[4] = 9
        #expect(
            try Self.decodeRequest(packet).get() == .hello(lowestVersion: 2, highestVersion: 9, wantsMemory: true))
        var status = AgentRequest.status.packet(number: 1)
        status[4] = 9
        #expect((try? Self.decodeRequest(status).get()) == nil)
    }

    @Test func limitsHold() {
        let tooMany = [KeyRecord](repeating: MessageSamples.symmetric, count: AgentFrame.maximumBatch + 1)
        #expect((try? Self.decodeRequest(AgentRequest.unwrap(tooMany, releases: []).packet(number: 1)).get()) == nil)
        #expect((try? Self.decodeRequest(AgentRequest.unwrap([], releases: []).packet(number: 1)).get()) == nil)
        let loans = [LoanName](repeating: MessageSamples.loans[0], count: AgentFrame.maximumReleases + 1)
        #expect((try? Self.decodeRequest(AgentRequest.release(loans).packet(number: 1)).get()) == nil)
        for count in [0, 257] {
            let packet = AgentRequest.makeFileKeys(.none, [], count: count, releases: []).packet(number: 1)
            #expect((try? Self.decodeRequest(packet).get()) == nil)
        }
        let long = ProtectionError(.busy, String(repeating: "é", count: 5000))
        #expect(AgentReply.failure(long).packet(number: 1).count < 1100)
        var report = LockReport(outcome: .incomplete(holders: []))
        let path = String(repeating: "x", count: 4096)
        report.outcome = .incomplete(holders: [String](repeating: path, count: 5000))
        report.openFiles = [LockReport.OpenFiles](
            repeating: LockReport.OpenFiles(process: 1, executable: path, count: 1), count: 5000)
        #expect(AgentReply.lockResult(report).packet(number: 1).count <= AgentFrame.maximumSize)
        var status = MessageSamples.status
        status.clients = [AgentStatus.Client](
            repeating: AgentStatus.Client(process: 1, executable: path, loans: 1), count: 5000)
        status.inTheWay = [String](repeating: path, count: 5000)
        status.openFiles = report.openFiles
        status.version = path
        status.movedPrograms = [AgentStatus.MovedProgram](
            repeating: AgentStatus.MovedProgram(old: path, new: path), count: 5000)
        #expect(AgentReply.statusResult(status).packet(number: 1).count <= AgentFrame.maximumSize)
    }

    @Test func listsThatAreCutSaySo() throws {
        let files = (1...30).map { LockReport.OpenFiles(process: $0, executable: "/e", count: 2) }
        let report = LockReport(outcome: .incomplete(holders: (1...30).map { "process \($0)" }), openFiles: files)
        guard case .lockResult(let short) = try Self.decodeReply(AgentReply.lockResult(report).packet(number: 1)).get(),
            case .incomplete(let holders) = short.outcome
        else {
            Issue.record("another message")
            return
        }
        #expect(holders.count == 24 && holders[22] == "process 23" && holders[23] == "and 7 more")
        #expect(short.openFiles.count == 24 && short.openFiles[22] == files[22])
        #expect(short.openFiles[23] == LockReport.OpenFiles(process: 0, executable: "and 7 more", count: 14))

        var status = MessageSamples.status
        status.inTheWay = (1...13).map { "process \($0)" }
        status.openFiles = files
        status.clients = (1...30).map { AgentStatus.Client(process: $0, executable: "/e", loans: 1) }
        guard
            case .statusResult(let back) = try Self.decodeReply(AgentReply.statusResult(status).packet(number: 1)).get()
        else {
            Issue.record("another message")
            return
        }
        #expect(back.inTheWay == status.inTheWay.prefix(11) + ["and 2 more"])
        #expect(back.openFiles.count == 12 && back.openFiles[11].executable == "and 19 more")
        #expect(back.clients.count == 24 && back.clients[23].executable == "and 7 more")
    }

    /// Whoever counts with a time gets a number that every integer holds.
    @Test func timesAreBounded() throws {
        func packet(_ bits: UInt64) -> [UInt8] {
            var packet = AgentReply.lockResult(LockReport(outcome: .graceRunning(seconds: 1))).packet(number: 1)
            packet.withUnsafeMutableBytes { $0.storeBytes(of: bits.littleEndian, toByteOffset: 17, as: UInt64.self) }
            return packet
        }
        for value in [0, 0.5, 1e9] {
            guard case .lockResult(let report) = try Self.decodeReply(packet(value.bitPattern)).get() else {
                Issue.record("\(value)")
                continue
            }
            #expect(report.outcome == .graceRunning(seconds: value))
        }
        for value in [1e9.nextUp, 1e300, .infinity, .nan, -.nan, -1, -0.0] as [Double] {
            #expect((try? Self.decodeReply(packet(value.bitPattern)).get()) == nil, "\(value)")
        }
        for (value, written) in [(1e300, 1e9), (.infinity, 1e9), (.nan, 0), (-1, 0)] as [(Double, Double)] {
            let report = LockReport(outcome: .graceRunning(seconds: value))
            let back = try Self.decodeReply(AgentReply.lockResult(report).packet(number: 1)).get()
            guard case .lockResult(let report) = back else { continue }
            #expect(report.outcome == .graceRunning(seconds: written), "\(value)")
        }
    }

    @Test func aMarkComesWithAUsagePageOnly() {
        let memory = AgentReply.NewMemory(epoch: 1, hasMark: true)
        #expect((try? Self.decodeReply(AgentReply.loans([], memory).packet(number: 1)).get()) == nil)
    }
}
