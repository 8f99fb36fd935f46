import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// What `Data.write` and its like do beside the grid: options, places, links, permissions.
@Suite struct WritingTests {
    @Test func optionsThatAreNoClassWriteNothing() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let nonsense: [Data.WritingOptions] = [
            [.noFileProtection, .completeFileProtectionUntilFirstUserAuthentication],
            [.noFileProtection, .completeFileProtectionUntilFirstUserAuthentication, .atomic],
            Data.WritingOptions(rawValue: 0x5000_0000), Data.WritingOptions(rawValue: 0x8000_0000),
            Data.WritingOptions(rawValue: 0xF000_0001),
        ]
        for options in nonsense {
            fixture.run {
                #expect(
                    failure { try WholeFileCall.sample.write(to: fixture.url("it"), options: options) }?.code == 512)
            }
            #expect(try fixture.names == [])
        }
        // Two of them together may be a third one, as the numbers have it.
        let both: Data.WritingOptions = [.noFileProtection, .completeFileProtection]
        #expect(both == .completeFileProtectionUnlessOpen)
    }

    @Test func writingOverAPlainFileWithAClassProtectsIt() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Array("plain as day, plain as day".utf8), "it")
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: fixture.url("it").path)
        try fixture.run { try WholeFileCall.sample.write(to: fixture.url("it"), options: .completeFileProtection) }
        #expect(try fixture.inspection("it").protectionClass == .complete)
        #expect(try fixture.run { try Data(contentsOf: fixture.url("it")) } == WholeFileCall.sample)
        let attributes = try FileManager.default.attributesOfItem(atPath: fixture.url("it").path)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
    }

    @Test func newProtectedFilesAreTheirOwnersAlone() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.run { try WholeFileCall.sample.write(to: fixture.url("it"), options: .completeFileProtection) }
        let attributes = try FileManager.default.attributesOfItem(atPath: fixture.url("it").path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
    }

    @Test func theNamedClassBeatsTheOldOneAndTheDirectorys() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.setProtectionClass(.completeUnlessOpen, of: fixture.path("."))
        try fixture.run {
            try WholeFileCall.sample.write(to: fixture.url("it"))
            #expect(try fixture.inspection("it").protectionClass == .completeUnlessOpen)
            try WholeFileCall.sample.write(to: fixture.url("it"), options: .completeFileProtection)
            #expect(try fixture.inspection("it").protectionClass == .complete)
            // And the old one beats the directory's.
            try WholeFileCall.sample.write(to: fixture.url("it"), options: .atomic)
            #expect(try fixture.inspection("it").protectionClass == .complete)
            try WholeFileCall.sample.write(to: fixture.url("it"), options: .noFileProtection)
            #expect(try fixture.inspection("it").protectionClass == ProtectionClass.none)
        }
    }

    @Test func withoutOverwritingIsKeptTogetherWithAtomic() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let options: Data.WritingOptions = [.completeFileProtection, .atomic, .withoutOverwriting]
        try fixture.run {
            try WholeFileCall.sample.write(to: fixture.url("it"), options: options)
            let before = try fixture.stored("it")
            let other = Data("another".utf8)
            #expect(
                failure { try other.write(to: fixture.url("it"), options: options) } == .cocoa(516, beneath: EEXIST))
            #expect(try fixture.stored("it") == before)
        }
    }

    @Test func aLinkIsFollowedAndStays() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try FileManager.default.createDirectory(at: fixture.url("inner"), withIntermediateDirectories: false)
        try fixture.protection.write(Array("old".utf8), to: fixture.path("inner/it"), class: .complete)
        try FileManager.default.createSymbolicLink(atPath: fixture.url("link").path, withDestinationPath: "inner/it")
        try fixture.run {
            #expect(try Data(contentsOf: fixture.url("link")) == Data("old".utf8))
            for options: Data.WritingOptions in [[], .atomic] {
                try WholeFileCall.sample.write(to: fixture.url("link"), options: options)
                #expect(try Data(contentsOf: fixture.url("inner/it")) == WholeFileCall.sample)
            }
        }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: fixture.url("link").path) == "inner/it")
        #expect(try fixture.inspection("inner/it").protectionClass == .complete)
    }

    /// Foundation's atomic call puts a new file in the link's place: in a directory with a class it must not be plain.
    @Test func aLinkInADirectoryWithAClassIsNotReplacedByAPlainFile() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.directory.makeDirectory("elsewhere")
        try fixture.directory.write([1], to: "elsewhere/it")
        try FileManager.default.createSymbolicLink(
            atPath: fixture.url("link").path, withDestinationPath: "../elsewhere/it")
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("."))
        try fixture.run { try WholeFileCall.sample.write(to: fixture.url("link"), options: .atomic) }
        let inspection = try FileInspection.inspect(fixture.directory.appending("elsewhere/it"))
        #expect(inspection.protectionClass == .complete)
        #expect(try fixture.run { try Data(contentsOf: fixture.url("link")) } == WholeFileCall.sample)
    }

    @Test func theClassOfADirectoryCountsThroughALinkToIt() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try FileManager.default.createDirectory(at: fixture.url("inner"), withIntermediateDirectories: false)
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("inner"))
        try FileManager.default.createSymbolicLink(atPath: fixture.url("link").path, withDestinationPath: "inner")
        try fixture.run { try "hello".write(to: fixture.url("link/it"), atomically: true, encoding: .utf8) }
        #expect(try fixture.inspection("inner/it").protectionClass == .complete)
    }

    /// Foundation cuts a path off at a NUL, so that must not be a way around.
    @Test func aPathThatIsCutOffAtANulIsLookedAtWhereItLeads() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: .complete)
        let path = fixture.url("it").path + "\0more"
        try fixture.run {
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "old")
            try "new".write(toFile: path, atomically: false, encoding: .utf8)
            #expect(NSData(data: WholeFileCall.sample).write(toFile: path, atomically: false))
            #expect(OutputStream(toFileAtPath: path, append: true) == nil)
            #expect(InputStream(fileAtPath: path) == nil)
        }
        #expect(try fixture.inspection("it").state == .protected)
        #expect(try fixture.protection.contents(of: fixture.path("it")) == Array(WholeFileCall.sample))
        #expect(try fixture.names == ["it"])
    }

    /// `String.write(to:)` takes the path of any URL.
    @Test func aTextIsProtectedWhateverTheSchemeOfItsURL() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("."))
        let url = try #require(URL(string: "other://host" + fixture.url("it").path))
        try fixture.run {
            try "a text".write(to: url, atomically: false, encoding: .utf8)
            #expect(try String(contentsOf: fixture.url("it"), encoding: .utf8) == "a text")
            // Reading is for others, such as FoundationNetworking, to do.
            #expect(failure { try String(contentsOf: url, encoding: .utf8) } == .cocoa(262))
            #expect(failure { try Data(contentsOf: url) } == .cocoa(262))
            #expect(failure { try WholeFileCall.sample.write(to: url) } == .cocoa(518))
        }
        #expect(try fixture.inspection("it").protectionClass == .complete)
    }

    @Test func aFileThatIsProtectedWhileItIsReadGivesItsContent() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.store(Array("old".utf8), "it")
        let data = try fixture.run {
            try WholeFile(fixture.url("it")).read {
                try fixture.protection.write(Array("new".utf8), to: fixture.path("it"), class: .complete)
                return Data(try fixture.stored("it"))
            } _: {
                $0
            }
        }
        #expect(data == Data("new".utf8))
    }

    @Test func largeContentComesBackWhole() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        // Several groups of the container, and part of one more.
        var data = Data(count: 5_000_003)
        data.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
            for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) }
        }
        try fixture.run {
            // A part of a larger one begins elsewhere than at its memory.
            for part in [data, data.dropFirst(4096 + 7), data.prefix(3_000_000).dropFirst(1)] {
                try part.write(to: fixture.url("it"), options: [.atomic, .completeFileProtection])
                #expect(try Data(contentsOf: fixture.url("it"), options: .alwaysMapped) == part)
                #expect(NSData(contentsOf: fixture.url("it")) as Data? == part)
            }
        }
    }

    @Test func aStreamOfAFileThatWasRaisedToCompleteIsNotGiven() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: .completeUnlessOpen)
        fixture.run { #expect(InputStream(url: fixture.url("it"))?.everything == Data("old".utf8).encoded) }
        try fixture.protection.setProtectionClass(.complete, of: fixture.path("it"))
        fixture.run { #expect(InputStream(url: fixture.url("it")) == nil) }
    }

    @Test func aFileThatIsMadePlainWhileItIsReadIsReadAsOne() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: .complete)
        let file = WholeFile(fixture.url("it"))
        try FileManager.default.removeItem(at: fixture.url("it"))
        try fixture.store(Array("new".utf8), "it")
        let data = try fixture.run {
            try file.read {
                Data(try fixture.stored("it"))
            } _: {
                $0
            }
        }
        #expect(data == Data("new".utf8))
    }

    /// As with Foundation, the last one wins and nobody is told of the others.
    @Test(arguments: [true, false]) func writersOfOneFileDoNotFailForEachOther(_ areInOneProcess: Bool) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let problems = Mutex<[Failure]>([])
        let contents = (0..<4).map { Data(repeating: UInt8($0), count: 5000) }
        let done = DispatchSemaphore(value: 0)
        for content in contents {
            // Another owner of the keys is to the files what another process is; but turns are taken by path.
            let name = areInOneProcess ? "it" : String(repeating: "./", count: Int(content[0])) + "it"
            let url = URL(fileURLWithPath: fixture.path(".").description, isDirectory: true)
            let path = url.path + "/" + name
            Thread.detachNewThread {
                for _ in 0..<25 {
                    let problem = fixture.run {
                        failure { try NSData(data: content).write(toFile: path, options: .completeFileProtection) }
                    }
                    if let problem { problems.withLock { $0.append(problem) } }
                }
                done.signal()
            }
        }
        for _ in contents { done.wait() }
        #expect(problems.withLock { $0 } == [])
        #expect(try fixture.names == ["it"])
        #expect(contents.contains(try fixture.run { try Data(contentsOf: fixture.url("it")) }))
    }
}
