import Cryptography
import ProtectionModel

extension FileKeyLease {
    /// Runs `body`, one operation, with a cipher of the file key that is gone when it returns.
    ///
    /// Throws `locked` before `body` begins when the loan has ended. A lock in the middle of it waits, or makes the cipher
    /// throw `keyNotLent` from then on: to `body` an error like any other, such as one of the disk.
    func withCipher<Result>(_ body: (inout ChunkCipher) throws -> Result) throws -> Result {
        if lendsForOperations {
            return try withKey { key in
                var cipher = try ChunkCipher(key: key.bytes)
                return try body(&cipher)
            }
        }
        try check()
        var cipher = try ChunkCipher(lending: self)
        return try body(&cipher)
    }
}
