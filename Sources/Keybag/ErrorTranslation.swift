import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

extension ProtectionError {
    /// A failure of the cryptographic library or of secret memory.
    init(_ error: CryptographyError) {
        switch error {
        case .secretMemory(let cause): self.init(cause)
        case .keyNotLent(let code, let message): self.init(code, message)
        default: self.init(.cryptography, "a cryptographic operation failed", cause: error)
        }
    }

    /// Secret memory cannot be had.
    init(_ error: SecretMemoryError) {
        self.init(.secretMemory, "memory for secrets cannot be had", cause: error)
    }

    /// A system call that failed.
    init(_ error: SystemError, _ sentence: String) {
        self.init(.system(error.errorNumber), sentence, path: error.path, cause: error)
    }
}

func translatingErrors<Result: ~Copyable>(
    _ body: () throws(CryptographyError) -> Result
) throws(ProtectionError) -> Result {
    do { return try body() } catch { throw ProtectionError(error) }
}

func translatingErrors<Result: ~Copyable>(
    _ body: () throws(SecretMemoryError) -> Result
) throws(ProtectionError) -> Result {
    do { return try body() } catch { throw ProtectionError(error) }
}

func translatingErrors<Result: ~Copyable>(
    _ sentence: String, _ body: () throws(SystemError) -> Result
) throws(ProtectionError) -> Result {
    do { return try body() } catch { throw ProtectionError(error, sentence) }
}
