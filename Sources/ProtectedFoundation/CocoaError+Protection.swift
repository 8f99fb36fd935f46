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
    init(_ error: ProtectionError, _ direction: Direction, path: String) {
        let isReading = direction == .reading
        let refused: CocoaError.Code = isReading ? .fileReadNoPermission : .fileWriteNoPermission
        let corrupt: CocoaError.Code = isReading ? .fileReadCorruptFile : .fileWriteUnknown
        let unknown: CocoaError.Code = isReading ? .fileReadUnknown : .fileWriteUnknown
        let code: CocoaError.Code
        var number = error.errorNumber
        switch error.code {
        case .locked, .noPasscodeSource, .otherClass:
            code = refused
            number = EPERM
        case .damaged, .recordMissing: code = corrupt
        case .needsNewerVersion, .unsupported, .notProtected, .foreignKeybag, .noKeybag, .busy, .invalidArgument,
            .secretMemory, .cryptography, .agentNotReachable, .wrongPasscode, .tooManyTries, .noPasscodeSet:
            code = unknown
        case .cancelled: code = .userCancelled
        case .alreadyExists: code = isReading ? .fileReadUnknown : .fileWriteFileExists
        case .system(let number): code = Self.code(of: number, isReading)
        }
        self.init(
            code,
            userInfo: [
                NSFilePathErrorKey: path, NSURLErrorKey: URL(fileURLWithPath: path),
                NSLocalizedFailureReasonErrorKey: error.description,
                NSUnderlyingErrorKey: NSError(domain: NSPOSIXErrorDomain, code: Int(number)),
                Self.protectionErrorKey: error,
            ])
    }

    /// Foundation's code of an `errno`.
    private static func code(of number: Int32, _ isReading: Bool) -> CocoaError.Code {
        switch number {
        case ENOENT, ENOTDIR: isReading ? .fileReadNoSuchFile : .fileNoSuchFile
        case EPERM, EACCES: isReading ? .fileReadNoPermission : .fileWriteNoPermission
        case ENAMETOOLONG: isReading ? .fileReadInvalidFileName : .fileWriteInvalidFileName
        case EFBIG where isReading: .fileReadTooLarge
        case ENOSPC, EDQUOT: isReading ? .fileReadUnknown : .fileWriteOutOfSpace
        case EROFS: isReading ? .fileReadUnknown : .fileWriteVolumeReadOnly
        case EEXIST: isReading ? .fileReadUnknown : .fileWriteFileExists
        default: isReading ? .fileReadUnknown : .fileWriteUnknown
        }
    }
}
