import Cryptography
import FileProtection
import TestSupport

@testable import ProtectedFoundation

/// A home with a keybag of the cheapest passcode in this process, and a directory for files.
struct DataFixture {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let protection: FileProtection

    init(passcode: String? = Self.passcode) throws {
        directory = try TemporaryDirectory(.memory)
        let home = KeybagHome(directory: directory.appending("home"))
        let keybag = try Keybag.create(
            in: home, passcode: try passcode.map { try Self.secret($0) }, recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        protection = try FileProtection.attach(keybag)
        try directory.makeDirectory("files")
    }

    static func secret(_ text: String) throws -> SecretBytes {
        let bytes = Array(text.utf8)
        return try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    func unlock() throws { try protection.unlock(passcode: try Self.secret(Self.passcode)) }

    /// Another owner of the same class keys, in a state.
    func owner(_ state: LockState) throws -> FileProtection {
        let other = try FileProtection.open(protection.home)
        if state == .beforeFirstUnlock { return other }
        try other.unlock(passcode: try Self.secret(Self.passcode))
        if state == .locked {
            // The first owner would hold the keys still, which a lock says.
            _ = try? other.lock()
        }
        return other
    }

    /// Runs `body` with the keys of this fixture in place of what is configured.
    func run<Result>(_ other: FileProtection? = nil, _ body: () throws -> Result) rethrows -> Result {
        try Keys.$given.withValue(.success(other ?? protection), operation: body)
    }

    /// Runs `body` where class keys cannot be had.
    func runWithoutKeys<Result>(_ error: ProtectionError.Code, _ body: () throws -> Result) rethrows -> Result {
        try Keys.$given.withValue(.failure(ProtectionError(error, "there are no keys")), operation: body)
    }

    func path(_ name: FilePath) -> FilePath { directory.appending("files").appending(name) }
    func url(_ name: FilePath) -> URL { URL(fileURLWithPath: path(name).description) }

    /// What lies on the disk, byte for byte.
    func stored(_ name: FilePath) throws -> [UInt8] { try directory.read(FilePath("files").appending(name)) }
    func store(_ bytes: [UInt8], _ name: FilePath) throws {
        try directory.write(bytes, to: FilePath("files").appending(name))
    }

    /// The names in the directory of files.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: path(".").description).sorted() }
    }

    func inspection(_ name: FilePath) throws -> FileInspection { try FileInspection.inspect(path(name)) }
}

/// The domain and number of an error that `body` throws, and of what lies beneath it.
struct Failure: Equatable, CustomStringConvertible {
    let domain: String
    let code: Int
    let beneath: Int?

    init(_ error: any Error) {
        let outer = error as NSError
        domain = outer.domain
        code = outer.code
        beneath = (outer.userInfo[NSUnderlyingErrorKey] as? any Error).map { ($0 as NSError).code }
    }

    private init(_ code: Int, _ beneath: Int?) {
        domain = NSCocoaErrorDomain
        self.code = code
        self.beneath = beneath
    }

    static func cocoa(_ code: Int, beneath: Int32? = nil) -> Failure { Failure(code, beneath.map { Int($0) }) }

    static let lockedReading = cocoa(257, beneath: EPERM)
    static let lockedWriting = cocoa(513, beneath: EPERM)

    var description: String { "\(domain) \(code), beneath \(beneath.map { "\($0)" } ?? "nothing")" }
}

/// Nil when `body` throws nothing.
func failure<Value>(_ body: () throws -> Value) -> Failure? {
    do {
        _ = try body()
        return nil
    } catch { return Failure(error) }
}
