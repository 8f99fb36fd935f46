import FileProtection
import TestSupport
import Testing

/// The same with keys that the agent lends and takes back at any moment.
@Suite struct AgentStreamTests {
    private let app: AppAgent
    private let protection: FileProtection
    private static let content = pattern(1_500_000)

    init() throws {
        app = try AppAgent()
        protection = try FileProtection.connect(app.home)
        try protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
    }

    @Test(arguments: ProtectionClass.allCases)
    func aLockEndsTheReadingOfClassAAndNoOther(protectionClass: ProtectionClass) async throws {
        try await protection.write(Self.content, to: app.path("file"), class: protectionClass)
        let bytes = try await protection.bytes(of: app.path("file"), chunkSize: 100_000)
        var chunks = bytes.chunks.makeAsyncIterator()
        var single = bytes.makeAsyncIterator()
        var joined = try await chunks.next() ?? []
        #expect(try await single.next() == Self.content[0])
        // By way of another connection, as any program of the user may.
        try FileProtection.connect(app.home).lock()
        guard protectionClass == .complete else {
            while let chunk = try await chunks.next() { joined += chunk }
            #expect(joined == Self.content)
            #expect(try await single.next() == Self.content[1])
            return
        }
        var codes: [ProtectionError.Code?] = []
        do { _ = try await chunks.next() } catch { codes.append(error.code) }
        do { _ = try await single.next() } catch { codes.append(error.code) }
        #expect(codes == [.locked(.complete), .locked(.complete)])
    }

    @Test(arguments: ProtectionClass.allCases)
    func aLockEndsTheWritingOfClassAAndNoOther(protectionClass: ProtectionClass) async throws {
        let (pieces, sender) = AsyncStream.makeStream(of: ArraySlice<UInt8>.self)
        let (other, path) = (try FileProtection.connect(app.home), app.path("file"))
        let half = Self.content.count / 2
        sender.yield(Self.content[..<half])
        sender.yield(Self.content[half...])
        sender.finish()
        let told = Collected<UInt64>()
        let code = await asyncCode {
            try await protection.write(
                pieces, to: path, class: protectionClass,
                progress: { progress in
                    told.add(progress.completedBytes)
                    if told.all.count == 1 { try? other.lock() }
                })
        }
        #expect(other.lockState == .locked)
        if protectionClass == .complete {
            #expect(code == .locked(.complete))
            #expect(try app.directory.names(in: "files").isEmpty)
            return
        }
        #expect(code == nil)
        try await protection.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        #expect(try await protection.contents(of: path) == Self.content)
    }

    @Test func aNewKeyCanBeHadAndCancelled() async throws {
        let path = app.path("file")
        try await protection.write(Self.content, to: path, class: ProtectionClass.none)
        for wanted in ProtectionClass.allCases {
            #expect(try await protection.setProtectionClass(wanted, of: path, rekey: true).to == wanted)
            #expect(try await protection.contents(of: path) == Self.content)
        }
        var moment = 1
        var codes: [ProtectionError.Code?] = []
        while true {
            let cancelling = SelfCancelling()
            let counter = CallCounter(at: moment) { cancelling.cancel() }
            let intercepted = try FileProtection.connect(app.home, system: counter.system)
            let code = await cancelling.code {
                try await intercepted.setProtectionClass(.complete, of: path, rekey: true)
            }
            if counter.calls < moment { break }
            codes.append(code)
            if code == nil {
                #expect(try await protection.contents(of: path) == Self.content)
            } else {
                #expect(code == .cancelled, "call \(moment)")
                #expect(try app.directory.names(in: "files") == ["file"])
                #expect(try await protection.contents(of: path) == Self.content)
            }
            moment += 1
        }
        #expect(codes.contains(.cancelled) && codes.contains(nil))
    }
}
