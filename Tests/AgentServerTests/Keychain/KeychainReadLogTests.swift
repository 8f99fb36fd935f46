import AgentClient
import Foundation
import KeychainModel
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import AgentServer
@testable import Keybag

private typealias Words = KeychainWords

/// The log of reads: a line for each, no name and no secret in it, bounded. Field report MU-04.
@Suite struct KeychainReadLogTests {
    private static let path: FilePath = "home/state/keychain-reads.log"

    private struct Line: Decodable {
        let time: String
        let process: Int32
        let executable: String
        let unit: String
        let caller: String
        let name: String?
        let item: String?
        let group: String?
        let result: String
    }

    @Test func eachReadIsALineWhenItIsAskedForAndNoneOtherwise() throws {
        let fixture = try AgentFixture()
        let agent = try fixture.start()
        #expect(agent.isReady)
        let client = try fixture.connect()
        #expect(try client.unlock() == nil)
        let keychain = AgentKeychain(at: fixture.socket)
        try keychain.perform(.add(Words.item("my account", "my secret"))) { _ in }
        #expect(try Words.find(keychain, "my account") == "my secret")
        #expect(throws: SystemError.self) { try fixture.directory.read(Self.path) }
        var settings = Settings()
        settings.logsKeychainReads = true
        try settings.write(to: fixture.home)
        #expect(try RawClient.code(of: try client.call(.reload)) == nil)

        let found = try keychain.perform(
            .find(Words.item("my account", nil, ["r_Data": .boolean(true), "r_PersistentRef": .boolean(true)])))
        let reference = try #require(found.results.first?.reference)
        #expect(Words.code(keychain, .find(try Words.item("none", nil, ["r_Data": .boolean(true)]))) == .itemNotFound)
        #expect(Words.code(keychain, .find(try Words.item("my account"))) == nil, "an attribute is no secret")
        let bytes = try fixture.directory.read(Self.path)
        let text = String(decoding: bytes, as: UTF8.self)
        let lines = try text.split(separator: "\n").map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
        #expect(lines.map(\.result) == ["read", "itemNotFound"])
        let first = try #require(lines.first)
        #expect(first.process == getpid() && first.executable == ProcessFacts.ownExecutable?.text)
        #expect(first.group == first.executable && first.caller == first.executable)
        #expect(first.item == reference.identifier.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
        #expect(!text.contains("my account") && !text.contains("my secret"))
        let status = try LinuxSystemCalls.shared.status(
            of: fixture.directory.appending(Self.path), in: currentDirectory, followLinks: false)
        #expect(status.permissions == 0o600)
    }

    /// Reads of one name can be followed when its item is deleted and added again; those of two cannot be taken for each other.
    @Test func aNameHasOneDigest() throws {
        var settings = Settings()
        settings.logsKeychainReads = true
        let fixture = try AgentFixture(settings: settings)
        let agent = try fixture.start()
        #expect(agent.isReady)
        #expect(try fixture.connect().unlock() == nil)
        let keychain = AgentKeychain(at: fixture.socket)
        for account in ["a", "b", "a"] {
            try keychain.perform(.add(Words.item(account, "secret"))) { _ in }
            #expect(try Words.find(keychain, account) == "secret")
            try keychain.perform(.delete(Words.item(account))) { _ in }
        }
        let lines = try String(decoding: fixture.directory.read(Self.path), as: UTF8.self).split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        let names = lines.compactMap(\.name)
        #expect(names.count == 3 && names.allSatisfy { $0.count == 32 && $0.allSatisfy(\.isHexDigit) })
        #expect(names.first == names.last && Set(names).count == 2)
        #expect(Set(lines.compactMap(\.item)).count == 3)
    }

    private static func identity(_ path: FilePath) -> CallerIdentity {
        CallerIdentity(
            caller: Caller(applicationIdentifier: nil, accessGroups: ["g"], source: .executable), executable: path,
            mark: nil, unit: "", entitlements: 0)
    }

    @Test func theLogIsBoundedAndKeepsFourOlderFiles() throws {
        let directory = try TemporaryDirectory(.memory)
        let log = KeychainReadLog(
            in: directory.path, isEnabled: true, log: try AgentLog(file: directory.appending("log")),
            system: LinuxSystemCalls.shared, clock: RealClock())
        let path = FilePath(bytes: [UInt8](repeating: 0x61, count: 4000))!
        for _ in 0..<1800 { log.write([try #require(log.line(ScriptedStore.result(nil), by: Self.identity(path), 1))]) }
        #expect(
            try directory.names() == ["keychain-reads.log"] + (1...4).map { "keychain-reads.log.\($0)" } + ["log"])
        for name in try directory.names() { #expect(try directory.read(FilePath(name)!).count <= 1 << 20) }
    }

    /// A file that was taken away is begun anew; what is no file is said, and nothing is written into it.
    @Test func aFileThatWasTakenAwayIsBegunAnew() throws {
        let directory = try TemporaryDirectory(.memory)
        let log = KeychainReadLog(
            in: directory.path, isEnabled: true, log: try AgentLog(file: directory.appending("log")),
            system: LinuxSystemCalls.shared, clock: RealClock())
        let line = try #require(log.line(ScriptedStore.result(nil), by: Self.identity("/bin/x"), 1))
        let path = directory.appending(KeychainReadLog.fileName).description
        func content() throws -> String {
            String(decoding: try directory.read(KeychainReadLog.fileName), as: UTF8.self)
        }
        log.write([line])
        #expect(unlink(path) == 0)
        log.write([line])
        #expect(try content() == line)
        #expect(rename(path, path + ".mine") == 0)
        try directory.write([], to: KeychainReadLog.fileName)
        log.write([line, line])
        #expect(try content() == line + line)
        let target = directory.appending("target").description
        for replace in [{ symlink(target, path) }, { mkfifo(path, 0o600) }, { mkdir(path, 0o700) }] {
            #expect(unlink(path) == 0)
            #expect(replace() == 0)
            log.write([line])
        }
        #expect(try !directory.names().contains("target"))
        let told = String(decoding: try directory.read("log"), as: UTF8.self).split(separator: "\n")
        #expect(told.count == 1 && told[0].contains("cannot be logged"))
        #expect(rmdir(path) == 0)
        log.write([line])
        #expect(try content() == line)
    }

    /// A full disk costs lines, and no read.
    @Test func whatCannotBeWrittenIsSaidOnce() throws {
        let directory = try TemporaryDirectory(.memory)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { call throws(SystemError) in
                guard call.operation == .write else { return .proceed }
                throw call.failure(ErrorNumber.noSpace)
            })
        let log = KeychainReadLog(
            in: directory.path, isEnabled: true, log: try AgentLog(file: directory.appending("log")), system: system,
            clock: RealClock())
        for _ in 0..<10 {
            log.write([try #require(log.line(ScriptedStore.result(nil), by: Self.identity("/bin/x"), 1))])
        }
        let told = String(decoding: try directory.read("log"), as: UTF8.self).split(separator: "\n")
        #expect(told.count == 1 && told[0].contains("cannot be logged"))
    }
}
