import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

/// Why a function of the C library failed: what it leaves in `errno`, and in the thread for `candado_error`.
struct CallFailure: Error {
    /// The `errno`. Never 0.
    let number: Int32
    let kind: candado_error_kind
    let text: String

    private init(_ number: Int32, _ kind: candado_error_kind, _ text: String) {
        // No system call fails with 0; a caller would take it for success.
        self.number = (1...4095).contains(number) ? number : EIO
        self.kind = kind
        self.text = text
    }

    init(_ given: ProtectionError) {
        let error = Self.settled(given)
        let place = error.path.map { "\($0.quoted): " } ?? ""
        let advice = Advice.sentence(for: error).map { "; \($0)" } ?? ""
        self.init(
            error.errorNumber, Self.kind(of: error.code),
            place + error.message + Self.reason(error.cause, error) + advice)
    }

    /// The cause between brackets, where it says more than the error.
    private static func reason(_ cause: (any Error)?, _ error: ProtectionError) -> String {
        switch cause {
        case let cause as ProtectionError: return " (\(cause.message))"
        // Linux's word for it, that there are too many links, would be another reason.
        case is SystemError where error.reason == .symbolicLink: return ""
        case let cause as SystemError:
            let sentence = SystemErrorText.sentence(cause.errorNumber)
            return error.message.lowercased().hasSuffix(sentence.lowercased()) ? "" : " (\(cause.call): \(sentence))"
        default: return ""
        }
    }

    /// Linux says the same of a link that was not followed and of links that lead round in circles before it.
    private static func settled(_ given: ProtectionError) -> ProtectionError {
        guard given.reason == .symbolicLink, let path = given.path, let cause = given.cause as? SystemError,
            cause.errorNumber == ELOOP
        else { return given }
        do throws(SystemError) {
            _ = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
            return given
        } catch {
            return error.errorNumber == ELOOP ? circular(at: path) : given
        }
    }

    private static func circular(at path: FilePath?) -> ProtectionError {
        ProtectionError(.system(ELOOP), "too many symbolic links, or some that lead round in circles", path: path)
    }

    /// A call on a file that failed. `follows` says that it follows a link at the end of the path.
    init(_ error: SystemError, at path: FilePath? = nil, follows: Bool = false) {
        let path = path ?? error.path
        if error.errorNumber == EOPNOTSUPP, error.call.hasSuffix("xattr") {
            self.init(
                ProtectionError(
                    .unsupported, "the file system has no extended attributes of users, which hold the key record",
                    path: path, reason: .fileSystem))
        } else if error.errorNumber == ELOOP {
            self.init(
                follows
                    ? Self.circular(at: path)
                    : ProtectionError(
                        .unsupported, "this is a symbolic link, which is not followed", path: path, cause: error,
                        reason: .symbolicLink))
        } else {
            let sentence = "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))"
            self.init(ProtectionError(.system(error.errorNumber), sentence, path: path))
        }
    }

    /// An argument that no call can do anything with.
    static func argument(_ number: Int32, _ sentence: String) -> CallFailure {
        CallFailure(number, CANDADO_ERROR_INVALID_ARGUMENT, sentence)
    }

    static var closedHandle: CallFailure {
        argument(EBADF, "this is no open handle of this process: it was closed, or never opened")
    }

    static var forked: CallFailure {
        CallFailure(
            ESTALE, CANDADO_ERROR_FORKED,
            "keys and handles do not pass to a forked child; call exec, or fork before the library is used first")
    }

    static func system(_ number: Int32, _ sentence: String) -> CallFailure {
        CallFailure(number, CANDADO_ERROR_SYSTEM, sentence)
    }

    /// Exhaustive, like the table of `errno` values.
    private static func kind(of code: ProtectionError.Code) -> candado_error_kind {
        switch code {
        case .locked, .noPasscodeSource: CANDADO_ERROR_LOCKED
        case .notProtected: CANDADO_ERROR_NOT_PROTECTED
        case .recordMissing: CANDADO_ERROR_RECORD_MISSING
        case .damaged: CANDADO_ERROR_DAMAGED
        case .foreignKeybag: CANDADO_ERROR_FOREIGN_KEYBAG
        case .needsNewerVersion: CANDADO_ERROR_NEEDS_NEWER_VERSION
        case .unsupported: CANDADO_ERROR_UNSUPPORTED
        case .noKeybag: CANDADO_ERROR_NO_KEYBAG
        case .agentNotReachable: CANDADO_ERROR_AGENT_NOT_REACHABLE
        case .busy: CANDADO_ERROR_BUSY
        case .invalidArgument: CANDADO_ERROR_INVALID_ARGUMENT
        case .system(EBADF), .system(ERANGE): CANDADO_ERROR_INVALID_ARGUMENT
        case .system, .alreadyExists: CANDADO_ERROR_SYSTEM
        case .wrongPasscode, .tooManyTries, .noPasscodeSet, .otherClass, .cancelled, .secretMemory, .cryptography:
            CANDADO_ERROR_OTHER
        }
    }

    /// Notes it for this thread and gives what the function's inner half returns.
    func noted() -> Int64 {
        var text = self.text
        text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                candado_library_note(Int32(kind.rawValue), $0.baseAddress, $0.count)
            }
        }
        return -Int64(number)
    }
}

/// Runs the inner half of a function: its result, or a negative `errno`.
@inline(__always)
func outcome(_ body: () throws(CallFailure) -> Int64) -> Int64 {
    do throws(CallFailure) { return try body() } catch { return error.noted() }
}

/// Runs what throws errors of the library.
@inline(__always)
func protecting<Result>(_ body: () throws(ProtectionError) -> Result) throws(CallFailure) -> Result {
    do throws(ProtectionError) { return try body() } catch { throw CallFailure(error) }
}

/// Runs calls on files.
func calling<Result: ~Copyable>(
    at path: FilePath? = nil, follows: Bool = false, _ body: () throws(SystemError) -> Result
) throws(CallFailure) -> Result {
    do throws(SystemError) { return try body() } catch { throw CallFailure(error, at: path, follows: follows) }
}
