import Foundation
import LinuxSystem
import ProtectionModel
import SecretMemory
import Testing

@testable import candado

/// A directory that goes away with its owner.
private final class Scratch {
    let path: String
    let output: Descriptor
    let errors: Descriptor

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "candado-console-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path
        output = try Self.open(url.appending(path: "out").path)
        errors = try Self.open(url.appending(path: "err").path)
    }

    private static func open(_ path: String) throws -> Descriptor {
        let system = LinuxSystemCalls.shared
        let number = try system.open(
            #require(FilePath(path)), in: currentDirectory, [.write, .create, .append], permissions: 0o600)
        return Descriptor(number, system)
    }

    func file(_ name: String, _ bytes: [UInt8], permissions: Int = 0o600) throws -> FilePath {
        let place = "\(path)/\(name)"
        _ = FileManager.default.createFile(
            atPath: place, contents: Data(bytes), attributes: [.posixPermissions: permissions])
        return try #require(FilePath(place))
    }

    func content(_ name: String) -> String {
        String(decoding: FileManager.default.contents(atPath: "\(path)/\(name)") ?? Data(), as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

@Suite("Console and passcodes")
struct ConsoleTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func console(isQuiet: Bool = false) -> Console {
        Console(
            system: LinuxSystemCalls.shared, output: scratch.output.number, errors: scratch.errors.number,
            isQuiet: isQuiet)
    }

    @Test("Results go to stdout alone, messages to stderr alone, in the order in which they were given")
    func streams() {
        let console = console()
        console.line("one")
        console.warning("a warning")
        console.line(JSON.integer(2))
        console.error(ProtectionError(.notProtected, "'f' is plain"))
        #expect(console.finish() == nil)
        #expect(scratch.content("out") == "one\n2\n")
        #expect(
            scratch.content("err")
                == "candado: warning: a warning\ncandado: error: 'f' is plain\ncandado: hint: protect it with 'candado protect'\n"
        )
    }

    @Test("Quiet leaves errors and results")
    func quiet() {
        let console = console(isQuiet: true)
        console.line("result")
        console.warning("w")
        console.hint("h")
        console.progress("p")
        console.error("e")
        #expect(console.finish() == nil)
        #expect(scratch.content("out") == "result\n")
        #expect(scratch.content("err") == "candado: error: e\n")
    }

    @Test("A message erases the progress line, and erasing nothing writes nothing")
    func progress() {
        let console = console()
        console.progress("")
        console.progress("12 files")
        console.error("e")
        console.progress("")
        #expect(scratch.content("err") == "\r\u{1B}[K12 files\r\u{1B}[Kcandado: error: e\n")
    }

    @Test("A result longer than the buffer comes out whole")
    func longResult() {
        let console = console()
        let line = String(repeating: "x", count: 1000)
        for _ in 0..<200 { console.line(line) }
        #expect(console.finish() == nil)
        #expect(scratch.content("out") == String(repeating: line + "\n", count: 200))
    }

    @Test("A failed write of the result is kept and told, and nothing more is written")
    func brokenOutput() throws {
        let system = LinuxSystemCalls.shared
        let full = Descriptor(try system.open("/dev/full", in: currentDirectory, [.write], permissions: 0), system)
        let console = Console(system: system, output: full.number, errors: scratch.errors.number)
        console.line("lost")
        #expect(!console.isBroken)
        #expect(console.finish()?.errorNumber == ENOSPC)
        #expect(console.isBroken)
        console.line("dropped")
        #expect(console.finish()?.errorNumber == ENOSPC)
    }

    struct Content: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let passcode: [UInt8]?

        init(_ description: String, _ bytes: [UInt8], _ passcode: [UInt8]?) {
            self.testDescription = description
            self.bytes = bytes
            self.passcode = passcode
        }

        static func repeated(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x61, count: count) }
    }

    static let contents: [Content] = [
        Content("no newline", Array("secret".utf8), Array("secret".utf8)),
        Content("one newline", Array("secret\n".utf8), Array("secret".utf8)),
        Content("two newlines", Array("secret\n\n".utf8), Array("secret\n".utf8)),
        Content("spaces and a carriage return", Array(" a b \r\n".utf8), Array(" a b \r".utf8)),
        Content("NUL and no UTF-8", [0x61, 0, 0xFF, 0x0A], [0x61, 0, 0xFF]),
        Content("a newline alone", [0x0A], nil),
        Content("nothing", [], nil),
        Content("2000 bytes", Content.repeated(2000), Content.repeated(2000)),
        Content("the longest", Content.repeated(4096) + [0x0A], Content.repeated(4096)),
        Content("one too many", Content.repeated(4097), nil),
        Content("far too many", Content.repeated(100_000), nil),
    ]

    @Test("One newline at the end of a passcode file goes, every other byte counts", arguments: contents)
    func passcodeFile(_ content: Content) throws {
        let path = try scratch.file("p", content.bytes)
        let prompt = PasscodePrompt(system: LinuxSystemCalls.shared, console: console(), clock: RealClock())
        guard let expected = content.passcode else {
            #expect {
                let passcode = try prompt.read(.file(path), SecretQuestion(prompt: "", explanation: ""))
                _ = passcode.count
            } throws: { error in
                if let error = error as? ProtectionError, case .invalidArgument = error.code { return true }
                return false
            }
            return
        }
        let passcode = try prompt.read(.file(path), SecretQuestion(prompt: "", explanation: ""))
        #expect(passcode.count == expected.count)
        let isEqual = passcode.withUnsafeBytes { $0.elementsEqual(expected) }
        #expect(isEqual)
        #expect(scratch.content("err").isEmpty)
    }

    @Test("A passcode file that others can read is used with a warning", arguments: [0o640, 0o604])
    func readableByOthers(_ permissions: Int) throws {
        let path = try scratch.file("p", [0x61], permissions: permissions)
        let passcode = try PasscodePrompt(system: LinuxSystemCalls.shared, console: console(), clock: RealClock()).read(
            .file(path), SecretQuestion(prompt: "", explanation: ""))
        #expect(passcode.count == 1)
        #expect(scratch.content("err") == "candado: warning: others can read \(path.quoted)\n")
    }

    @Test("A source that is no person gets one try")
    func oneTry() throws {
        let path = try scratch.file("p", [0x61])
        let prompt = PasscodePrompt(system: LinuxSystemCalls.shared, console: console(), clock: RealClock())
        var tries = 0
        #expect(throws: ProtectionError.self) {
            try prompt.withPasscode(.file(path), prompt: "") { _ in
                tries += 1
                throw ProtectionError(.wrongPasscode, "wrong")
            }
        }
        #expect(tries == 1)
    }
}
