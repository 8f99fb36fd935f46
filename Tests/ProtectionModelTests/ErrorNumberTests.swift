import Glibc
import LinuxSystem
import ProtectionModel
import Testing

/// The table from codes to `errno`.
@Suite struct ErrorNumberTests {
    static let keybag = KeybagIdentifier(bytes: [UInt8](repeating: 7, count: 16))

    @Test func lockedAndDamagedAreNeverTheErrnoOfAMissingFile() throws {
        let keybag = try #require(Self.keybag)
        var table: [(ProtectionError.Code, Int32)] = [
            (.locked(nil), ENOKEY), (.wrongPasscode, EKEYREJECTED), (.tooManyTries(retryAfter: 1), EAGAIN),
            (.noPasscodeSet, EPERM), (.noPasscodeSource, ENOKEY), (.notProtected, ENODATA), (.recordMissing, ENODATA),
            (.foreignKeybag(keybag), ENOKEY), (.needsNewerVersion, EOPNOTSUPP), (.unsupported, EOPNOTSUPP),
            (.noKeybag, ENOKEY), (.alreadyExists, EEXIST), (.otherClass(.complete), EPERM), (.busy, EBUSY),
            (.invalidArgument, EINVAL), (.cancelled, ECANCELED), (.secretMemory, ENOMEM), (.cryptography, EIO),
            (.system(ENOSPC), ENOSPC), (.system(EROFS), EROFS),
        ]
        table += ProtectionClass.allCases.map { (.locked($0), ENOKEY) }
        table += ProtectionError.Layer.allCases.map { (.damaged($0), EBADMSG) }
        for (code, number) in table {
            let error = ProtectionError(code, "a sentence")
            #expect(error.errorNumber == number, "\(code)")
            #expect(error.errorNumber != ENOENT, "\(code)")
        }
    }
}
