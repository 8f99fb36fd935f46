import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Links are followed as the kernel follows them, and what cannot be followed is not taken for plain.
@Suite struct LinkTests {
    private static let secret = Array("a secret, a secret, a secret".utf8)

    private static func name(_ number: Int) -> FilePath { FilePath("link\(number)") ?? "link" }

    /// The kernel follows 40 links, and no more.
    @Test(arguments: [1, 39, 40, 41, 60]) func aChainIsFollowedAsFarAsTheKernelFollowsIt(_ count: Int) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Self.secret, to: fixture.path("link0"), class: .complete)
        for index in 1...count {
            try FileManager.default.createSymbolicLink(
                atPath: fixture.url(Self.name(index)).path, withDestinationPath: "link\(index - 1)")
        }
        let url = fixture.url(Self.name(count))
        let before = try fixture.stored("link0")
        try fixture.run {
            let read = try? Data(contentsOf: url)
            let written = failure { try WholeFileCall.sample.write(to: url) }
            #expect(read == (count <= 40 ? Data(Self.secret) : nil))
            #expect((written == nil) == (count <= 40))
            #expect((OutputStream(url: url, append: true) == nil) == (count <= 40))
            if count <= 40 {
                let now = try Data(contentsOf: fixture.url("link0"))
                #expect(now == WholeFileCall.sample)
            } else {
                let now = try fixture.stored("link0")
                #expect(now == before)
            }
        }
        #expect(try fixture.inspection("link0").protectionClass == .complete)
    }

    /// Each link alone is short; put together they are longer than a path may be.
    @Test(arguments: [true, false]) func aChainOfLongTargetsIsNoWayAround(_ isThere: Bool) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let folder = String(repeating: "d", count: 200)
        try FileManager.default.createDirectory(
            atPath: fixture.path("base").description, withIntermediateDirectories: false)
        try FileManager.default.createDirectory(
            atPath: fixture.path("base").description + "/" + folder, withIntermediateDirectories: false)
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("."))
        let base = fixture.path("base").description + "/"
        if isThere { try fixture.protection.write(Self.secret, to: fixture.path("link0"), class: .complete) }
        try FileManager.default.createSymbolicLink(atPath: base + "link0", withDestinationPath: "../link0")
        for index in 1...30 {
            try FileManager.default.createSymbolicLink(
                atPath: base + "link\(index)", withDestinationPath: "\(folder)/../link\(index - 1)")
        }
        let url = URL(fileURLWithPath: base + "link30")
        fixture.run {
            _ = try? WholeFileCall.sample.write(to: url)
            if isThere { #expect((try? Data(contentsOf: url)) == WholeFileCall.sample) }
        }
        let state = (try? fixture.inspection("link0"))?.state
        #expect(state == (isThere ? .protected : nil))
    }

    @Test func whatIsAtTheEndOfALinkThatIsNoTextIsNotTakenForContent() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let odd = try #require(FilePath(bytes: Array("odd-".utf8) + [0xFF]))
        try fixture.protection.write(Self.secret, to: fixture.path("source"), class: .complete)
        let system = LinuxSystemCalls.shared
        try system.rename(
            fixture.path("source"), in: currentDirectory, to: fixture.path(odd), in: currentDirectory,
            replacing: .forbidden)
        let link = fixture.path("link")
        #expect(fixture.path(odd).withCString { end in link.withCString { symlink(end, $0) } } == 0)
        let url = fixture.url("link")
        let before = try fixture.stored(odd)
        fixture.run {
            for call in WholeFileCall.ofOurs where call.demands == nil {
                let outcome = Result { try call.run(url) }
                if case .success(let given?) = outcome, call.effect != .cannotWrite {
                    Issue.record("\(call) gave \(given.prefix(80))")
                }
            }
            #expect(FileManager.default.contents(atPath: url.path) == nil)
            #expect((try? FileHandle(forReadingFrom: url)) == nil)
            #expect(FileHandle(forReadingAtPath: url.path) == nil)
            #expect((try? FileHandle(forUpdating: url)) == nil)
            #expect(failure { try Data(contentsOf: url) }?.code == 256)
        }
        #expect(try fixture.stored(odd) == before)
    }

    @Test func devicesAndPipesBehindLinksAreFoundations() throws {
        let fixture = try DataFixture()
        try FileManager.default.createSymbolicLink(
            atPath: fixture.url("null").path, withDestinationPath: "/dev/null")
        try fixture.runWithoutKeys(.noKeybag) {
            try WholeFileCall.sample.write(to: fixture.url("null"))
            #expect(FileManager.default.contents(atPath: fixture.url("null").path) == nil)
            #expect(failure { try Data(contentsOf: fixture.url("null")) }?.beneath == Int(EACCES))
        }
    }
}
