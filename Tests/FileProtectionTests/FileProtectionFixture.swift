import Cryptography
import FileProtection
import TestSupport

/// An app's view: a home with a passcode, opened afresh, and a directory for files.
struct AppFixture {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let clock = TestClock()
    let protection: FileProtection

    init(_ settings: Settings = Settings(), passcode: String? = Self.passcode) throws {
        directory = try TemporaryDirectory(.memory)
        let home = KeybagHome(directory: directory.appending("home"))
        _ = try Keybag.create(
            in: home, passcode: try passcode.map { try Self.secret($0) }, recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)), clock: clock)
        if settings != Settings() { try settings.write(to: home) }
        try directory.makeDirectory("files")
        protection = try FileProtection.open(home, clock: clock)
    }

    static func secret(_ text: String) throws -> SecretBytes {
        let bytes = Array(text.utf8)
        return try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// The embedded keybag, which this fixture always has.
    var keybag: Keybag {
        get throws {
            guard let keybag = protection.embeddedKeybag else {
                throw ProtectionError(.noKeybag, "the keybag is not embedded")
            }
            return keybag
        }
    }

    func unlock() throws { try protection.unlock(passcode: try Self.secret(Self.passcode)) }
    func path(_ name: FilePath) -> FilePath { directory.appending("files").appending(name) }
}

/// The code of the error that `body` throws; nil when it throws none.
func code<Value>(_ body: () throws -> Value) -> ProtectionError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? ProtectionError)?.code
    }
}
