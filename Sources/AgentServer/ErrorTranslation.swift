import LinuxSystem
import ProtectionModel

extension ProtectionError {
    /// A system call that failed.
    init(_ error: SystemError, _ sentence: String) {
        self.init(.system(error.errorNumber), sentence, path: error.path, cause: error)
    }
}

func translatingErrors<Result: ~Copyable>(
    _ sentence: String, _ body: () throws(SystemError) -> Result
) throws(ProtectionError) -> Result {
    do { return try body() } catch { throw ProtectionError(error, sentence) }
}
