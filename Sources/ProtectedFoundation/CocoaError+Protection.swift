import FileProtection
import Foundation

extension CocoaError {
    /// Which of Foundation's two families of codes an error belongs to.
    enum Direction {
        case reading
        case writing
    }

    /// The key under which the `userInfo` of an error has the ``ProtectionError`` that it came from.
    public static let protectionErrorKey = "CandadoProtectionError"

    /// What a Foundation call throws for an error of ours: one exhaustive table. What is locked is 257 or 513 with `EPERM`
    /// beneath, as on Apple's systems.
    ///
    /// An error that Foundation knows too, such as a missing file, is the one that Foundation throws, word for word; every
    /// other says what is wrong and what to do about it.
    init(_ error: ProtectionError, _ direction: Direction, path: String, url: URL? = nil) {
        let isReading = direction == .reading
        let refused: CocoaError.Code = isReading ? .fileReadNoPermission : .fileWriteNoPermission
        let corrupt: CocoaError.Code = isReading ? .fileReadCorruptFile : .fileWriteUnknown
        let unknown: CocoaError.Code = isReading ? .fileReadUnknown : .fileWriteUnknown
        let code: CocoaError.Code
        var number = error.errorNumber
        var isFoundations = false
        switch error.code {
        case .locked, .noPasscodeSource, .otherClass:
            code = refused
            number = ErrorNumber.notPermitted
        case .damaged, .recordMissing: code = corrupt
        case .unsupported where error.reason == .directory:
            code = unknown
            number = ErrorNumber.isDirectory
            isFoundations = true
        case .needsNewerVersion, .unsupported, .notProtected, .foreignKeybag, .noKeybag, .busy, .invalidArgument,
            .secretMemory, .cryptography, .agentNotReachable, .wrongPasscode, .tooManyTries, .noPasscodeSet:
            code = unknown
        case .cancelled: code = .userCancelled
        case .alreadyExists:
            code = isReading ? .fileReadUnknown : .fileWriteFileExists
            isFoundations = true
        case .system(let number):
            code = Self.code(of: number, isReading)
            isFoundations = true
        }
        var information: [String: Any] = [
            NSFilePathErrorKey: path, NSURLErrorKey: url ?? URL(fileURLWithPath: path),
            NSUnderlyingErrorKey: isFoundations ? Self.posix(number) : Self.posixObject(number),
            Self.protectionErrorKey: error,
        ]
        if !isFoundations { information[NSLocalizedFailureReasonErrorKey] = error.description }
        if let suggestion = Self.suggestion(for: error) {
            information[NSLocalizedRecoverySuggestionErrorKey] = suggestion
        }
        self.init(code, userInfo: information)
    }

    /// As Foundation on Linux has it beneath: a value that is no `NSError`, and does not become one by a cast.
    private static func posix(_ number: Int32) -> any Error {
        if let code = POSIXErrorCode(rawValue: number) { return POSIXError(code) }
        return posixObject(number)
    }

    /// As on Apple's systems, where programs look for an `NSError` there.
    private static func posixObject(_ number: Int32) -> any Error {
        NSError(domain: NSPOSIXErrorDomain, code: Int(number))
    }

    /// Foundation's code of an `errno`.
    private static func code(of number: Int32, _ isReading: Bool) -> CocoaError.Code {
        switch number {
        case ENOENT: isReading ? .fileReadNoSuchFile : .fileNoSuchFile
        case EPERM, EACCES: isReading ? .fileReadNoPermission : .fileWriteNoPermission
        case ENAMETOOLONG: isReading ? .fileReadInvalidFileName : .fileWriteInvalidFileName
        case EFBIG where isReading: .fileReadTooLarge
        case ENOSPC, EDQUOT: isReading ? .fileReadUnknown : .fileWriteOutOfSpace
        case EROFS: isReading ? .fileReadUnknown : .fileWriteVolumeReadOnly
        case EEXIST: isReading ? .fileReadUnknown : .fileWriteFileExists
        default: isReading ? .fileReadUnknown : .fileWriteUnknown
        }
    }

    /// What to do next; nil where the error alone says it.
    private static func suggestion(for error: ProtectionError) -> String? {
        switch error.code {
        case .locked:
            "Unlock with 'candado unlock', or wait for protectedDataDidBecomeAvailableNotification, and try again."
        case .wrongPasscode: "Try again with the right passcode."
        case .tooManyTries: "Wait until the next try is allowed."
        case .noPasscodeSet: "Set a passcode with 'candado passcode set'."
        case .noPasscodeSource: "Run 'candado unlock' where the passcode can be typed."
        case .damaged(.keybag), .damaged(.deviceKey), .damaged(.capsule):
            "Run 'candado doctor', which says what is left of the keybag."
        case .damaged, .recordMissing:
            "Run 'candado repair' on the file; if that does not help, take it from a backup together with its attributes."
        case .notProtected:
            "The file is plain: read it with Foundation's own call, or protect it with 'candado protect'."
        case .foreignKeybag: "Use the home that it was protected with, or bring its keys here with 'candado recover'."
        case .needsNewerVersion: "Install a newer version of Candado."
        case .unsupported: unsupported(error.reason)
        case .noKeybag: "Make one with 'candado init', or name another home with FileProtection.configure."
        case .agentNotReachable:
            "Start it with 'candado unlock', or give this process a keybag of its own with FileProtection.configure(.embedded())."
        case .otherClass: "Change the class first, with 'candado set-class'."
        case .busy: "Try again."
        case .secretMemory: "Raise the limit of locked memory (RLIMIT_MEMLOCK)."
        case .invalidArgument, .cryptography, .alreadyExists, .cancelled, .system: nil
        }
    }

    private static func unsupported(_ reason: ProtectionError.Unsupported?) -> String? {
        switch reason {
        case .fileSystem:
            "Put the file on a file system with extended attributes of users, such as ext4, XFS, Btrfs or tmpfs."
        case .hardLinks: "Write to a file with one name."
        case .directory, .notRegular: nil
        case .symbolicLink: "Name the file at the end of the link."
        case .ownHome: "Put the file somewhere else: this is Candado's own home."
        case .locks: "Put the file on a file system where range locks work."
        case nil: "Use one of the four protection classes."
        }
    }
}
