import CCandado
import Cryptography
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// All suites of the C library: it keeps one home for the whole process, so they run one after the other.
@Suite(.serialized) enum CLibraryTests {}

/// A home with keys of its own in this process, which the C library uses until the next fixture is made, and a directory for
/// files.
final class LibraryFixture {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let home: KeybagHome
    private(set) var protection: FileProtection

    init() throws {
        directory = try TemporaryDirectory(.memory)
        home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try Self.secret(Self.passcode), recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        try directory.makeDirectory("files")
        protection = try FileProtection.open(home)
        Library.home.use(protection)
    }

    static func secret(_ text: String) throws -> SecretBytes {
        let bytes = Array(text.utf8)
        return try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    func unlock() throws { try protection.unlock(passcode: try Self.secret(Self.passcode)) }
    func lock() throws { try protection.lock() }

    /// Brings the keys into a state; before the first unlock only in a process that starts, so to speak.
    func enter(_ state: LockState) throws {
        switch state {
        case .beforeFirstUnlock:
            protection = try FileProtection.open(home)
            Library.home.use(protection)
        case .unlocked: try unlock()
        case .locked:
            try unlock()
            try lock()
        }
        #expect(candado_lock_state() == EventQueue.number(of: state))
    }

    /// The path of a file, as C has it.
    func path(_ name: String) -> String { directory.appending("files").description + "/" + name }

    /// Makes a protected file of a class.
    func makeFile(_ name: String, _ protectionClass: ProtectionClass, _ content: [UInt8] = Array("hello".utf8)) throws {
        try #require(
            candado_write_file(path(name), content, content.count, Int32(protectionClass.rawValue), 0) == 0,
            "\(lastError())")
    }
}

/// The sentence about the last failure in this thread.
func lastError() -> String {
    var buffer = [CChar](repeating: 0, count: 1024)
    let length = candado_error(&buffer, buffer.count)
    return String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The errno of a call that fails with -1; nil when it does not fail.
func failure<Result: BinaryInteger>(_ call: () -> Result) -> Int32? {
    errno = 0
    let result = call()
    let number = errno
    guard result == -1 else { return nil }
    return number
}

/// Flags as C has them.
let follow = CANDADO_FOLLOW
let replace = CANDADO_REPLACE
let exclusive = CANDADO_EXCLUSIVE
let rekey = CANDADO_REKEY

extension candado_access {
    var number: Int32 { Int32(bitPattern: rawValue) }
}

extension candado_event_kind {
    var number: Int32 { Int32(bitPattern: rawValue) }
}

extension candado_error_kind {
    var number: Int32 { Int32(bitPattern: rawValue) }
}

extension ProtectionClass {
    var number: Int32 { Int32(rawValue) }
}
