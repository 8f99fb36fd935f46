import LinuxSystem

extension ProtectionError {
    /// The `errno` of this error, for callers that speak C: the mount, the C library, the database extension.
    ///
    /// One exhaustive table. Locked is `ENOKEY` and damaged is `EBADMSG`, as in fscrypt and dm-integrity, so that neither
    /// can be taken for a missing file.
    public var errorNumber: Int32 {
        switch code {
        case .locked: ErrorNumber.requiredKeyNotAvailable
        case .wrongPasscode: ErrorNumber.keyRejected
        case .tooManyTries: ErrorNumber.wouldBlock
        case .noPasscodeSet: ErrorNumber.notPermitted
        case .noPasscodeSource: ErrorNumber.requiredKeyNotAvailable
        case .notProtected, .recordMissing: ErrorNumber.noAttribute
        case .damaged: ErrorNumber.badMessage
        case .foreignKeybag: ErrorNumber.requiredKeyNotAvailable
        case .needsNewerVersion, .unsupported: ErrorNumber.notSupported
        case .noKeybag: ErrorNumber.requiredKeyNotAvailable
        case .alreadyExists: ErrorNumber.exists
        case .otherClass: ErrorNumber.notPermitted
        case .busy: ErrorNumber.busy
        case .invalidArgument: ErrorNumber.invalidArgument
        case .cancelled: ErrorNumber.cancelled
        case .secretMemory: ErrorNumber.noMemory
        case .cryptography: ErrorNumber.inputOutput
        case .agentNotReachable: ErrorNumber.connectionRefused
        case .system(let number): number
        }
    }
}
