import Cryptography
import FileProtection
import TestSupport

@testable import ProtectedFoundation

/// A home with a passcode and a directory for files, with what is needed to look at them without Foundation.
final class FilesFixture: Sendable {
    static let passcode = "correct horse"
    /// What the files of these tests hold, so that it can be looked for on the disk.
    static let content = Data((0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) })

    let directory: TemporaryDirectory
    let home: KeybagHome
    /// Unlocked until ``lock()``.
    let protection: FileProtection

    init(_ place: TemporaryDirectory.Place = .memory) throws {
        directory = try TemporaryDirectory(place)
        home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try Self.secret(), recoveryKey: nil, cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        try directory.makeDirectory("files")
        protection = try FileProtection.open(home)
        try protection.unlock(passcode: try Self.secret())
    }

    private static func secret() throws -> SecretBytes {
        let bytes = Array(passcode.utf8)
        return try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    func lock() throws { try protection.lock() }
    func unlock() throws { try protection.unlock(passcode: try Self.secret()) }

    /// A second one with calls that can be made to fail, unlocked.
    func opened(_ system: any SystemCalls = LinuxSystemCalls.shared) throws -> FileProtection {
        try Self.opened(home, system)
    }

    /// The same of a fixture in another process.
    static func opened(_ home: KeybagHome, _ system: any SystemCalls) throws -> FileProtection {
        let result = try FileProtection.open(home, system: system)
        try result.unlock(passcode: try secret())
        return result
    }

    /// Runs `body` with this fixture's keys.
    func run<Value>(_ body: () throws -> Value) rethrows -> Value {
        try Keys.$given.withValue(.success(protection)) { try body() }
    }

    /// Runs `body` in a lock state. Before the first unlock it is another process's view.
    func run<Value>(_ state: LockState, _ body: () throws -> Value) throws -> Value {
        switch state {
        case .beforeFirstUnlock:
            return try Keys.$given.withValue(.success(try FileProtection.open(home))) { try body() }
        case .unlocked: return try run(body)
        case .locked:
            try lock()
            return try run(body)
        }
    }

    func file(_ name: String) -> FilePath { directory.appending("files").appending(FilePath(name) ?? "") }
    func path(_ name: String) -> String { file(name).description }
    func url(_ name: String) -> URL { URL(fileURLWithPath: path(name)) }

    /// Makes a protected file.
    func protect(_ name: String, _ protectionClass: ProtectionClass, _ content: Data = FilesFixture.content) throws {
        try protection.write(Array(content), to: file(name), class: protectionClass)
    }

    /// Makes a plain file.
    func write(_ name: String, _ content: Data = FilesFixture.content) throws {
        try directory.write(Array(content), to: FilePath("files/" + name) ?? "")
    }

    /// Makes a directory that gives a class.
    func makeDirectory(_ name: String, _ protectionClass: ProtectionClass? = nil) throws {
        try directory.makeDirectory(FilePath("files/" + name) ?? "")
        if let protectionClass { try protection.setProtectionClass(protectionClass, of: file(name)) }
    }

    /// The bytes on the disk; nil when there is no such file.
    func bytes(_ name: String) -> Data? {
        (try? directory.read(FilePath("files/" + name) ?? "")).map { Data($0) }
    }

    /// The content as the library itself reads it.
    func content(_ name: String) throws -> Data { Data(try protection.contents(of: file(name))) }

    func protectionClass(_ name: String) throws -> ProtectionClass? { try protection.protectionClass(of: file(name)) }

    func names(_ name: String = "") throws -> [String] {
        try directory.names(in: FilePath("files/" + name) ?? "")
    }

    /// True when no part of ``content`` lies on the disk in the clear, in whichever file of the directory.
    func holdsNothingPlain(in name: String = "") throws -> Bool {
        let marker = Self.content[1000..<1032]
        for each in try names(name) {
            let path = name.isEmpty ? each : name + "/" + each
            if let bytes = bytes(path) {
                if bytes.range(of: marker) != nil { return false }
            } else if try !holdsNothingPlain(in: path) {
                return false
            }
        }
        return true
    }
}

/// The code of the `CocoaError` that `body` throws and the number beneath; nil when it throws none.
func thrownBy<Value>(_ body: () throws -> Value) -> FilesFailure? {
    do {
        _ = try body()
        return nil
    } catch {
        let plain = error as NSError
        let beneath = plain.userInfo[NSUnderlyingErrorKey] as? any Error
        return FilesFailure(domain: plain.domain, code: plain.code, beneath: beneath.map { ($0 as NSError).code })
    }
}

struct FilesFailure: Equatable, CustomStringConvertible {
    var domain = "NSCocoaErrorDomain"
    let code: Int
    let beneath: Int?
    var description: String { "\(domain) \(code) over \(beneath.map(String.init) ?? "nothing")" }

    static let lockedReading = FilesFailure(code: 257, beneath: 1)
    static let lockedWriting = FilesFailure(code: 513, beneath: 1)
}
