import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

extension ProtectionError {
    /// Any error of the floors below as a `ProtectionError`, with the original as its cause and a path where there is
    /// one. The only place of this module where errors change their type.
    static func from(_ error: any Error, at path: FilePath? = nil) -> ProtectionError {
        let mapped: ProtectionError
        switch error {
        case let error as ProtectionError:
            mapped = error
        case let error as SystemError where error.errorNumber == ErrorNumber.tooManyLinks:
            mapped = ofLinks(error, at: path ?? error.path)
        case let error as SystemError:
            // The path that was asked for says more than the name within its directory.
            mapped = from(error).relocated(to: path ?? error.path)
        case let error as ContainerFile.Unsettled:
            mapped = error.reason
        case let error as CryptographyError:
            switch error {
            case .authenticationFailed:
                mapped = ProtectionError(.damaged(.chunk), "sealed bytes do not authenticate", cause: error)
            case .secretMemory:
                mapped = ProtectionError(.secretMemory, "no memory for secrets", cause: error)
            case .keyNotLent(let code, let message):
                mapped = ProtectionError(code, message)
            default:
                mapped = ProtectionError(.cryptography, "the cryptographic library failed", cause: error)
            }
        case is SecretMemoryError:
            mapped = ProtectionError(.secretMemory, "no memory for secrets", cause: error)
        default:
            mapped = ProtectionError(.system(ErrorNumber.inputOutput), "an unexpected error", cause: error)
        }
        return path.map(mapped.at) ?? mapped
    }

    private static func from(_ error: SystemError) -> ProtectionError {
        let aboutAttributes = error.call.hasSuffix("xattr") || error.call.hasSuffix("xattrat")
        switch error.errorNumber {
        case ErrorNumber.notSupported where aboutAttributes:
            return ProtectionError(
                .unsupported, "the file system has no extended attributes of users, which hold the key record",
                path: error.path, cause: error, reason: .fileSystem)
        case ErrorNumber.noSpace where aboutAttributes, ErrorNumber.rangeTooLarge where aboutAttributes:
            return ProtectionError(
                .system(error.errorNumber),
                "there is no room left for the extended attribute that holds the key record",
                path: error.path, cause: error)
        case ErrorNumber.noEntry:
            return ProtectionError(
                .system(error.errorNumber), "no such file or directory", path: error.path, cause: error)
        case ErrorNumber.exists:
            return ProtectionError(.alreadyExists, "the file exists already", path: error.path, cause: error)
        case ErrorNumber.wouldBlock:
            return ProtectionError(.busy, "somebody else is working on the file", path: error.path, cause: error)
        default:
            return ProtectionError(
                .system(error.errorNumber), "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))",
                path: error.path)
        }
    }

    /// Linux says the same of a link that was not followed and of links that lead round in circles before it.
    private static func ofLinks(_ error: SystemError, at path: FilePath?) -> ProtectionError {
        if let path {
            do {
                _ = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
            } catch {
                if error.errorNumber == ErrorNumber.tooManyLinks {
                    return ProtectionError(
                        .system(error.errorNumber), "too many symbolic links, or some that lead round in circles",
                        path: path, cause: error)
                }
            }
        }
        return ProtectionError(
            .unsupported, "this is a symbolic link, which is not followed", path: path, cause: error,
            reason: .symbolicLink)
    }

    /// Runs `body` and maps what it throws.
    static func mapping<Result>(at path: FilePath? = nil, _ body: () throws -> Result) throws(ProtectionError) -> Result
    {
        do { return try body() } catch { throw from(error, at: path) }
    }
}
