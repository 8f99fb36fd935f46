import ProtectionModel
import SecretMemory

/// A passcode that waits to be tried, by reference; zeroed with the last one.
final class PasscodeTry: Sendable {
    let passcode: SecretBytes

    /// Copies it: the caller zeroes the original.
    init(copying bytes: UnsafeRawBufferPointer) throws(ProtectionError) {
        do { passcode = try SecretBytes(copying: bytes) } catch {
            throw ProtectionError(.secretMemory, "memory for secrets cannot be had", cause: error)
        }
    }
}
