import ProtectionModel
import SecretMemory

/// What a passcode may be: 1 to 1,024 bytes, any of them but NUL, taken exactly as they are. No byte is trimmed,
/// normalised or folded here; what reads a line from a terminal or a file decides about its line feed.
public enum Passcode {
    /// The most bytes of a passcode.
    public static let maximumCount = 1024

    /// Throws `invalidArgument`, saying what is wrong, for bytes that no passcode can be.
    public static func check(_ passcode: borrowing SecretBytes) throws(ProtectionError) {
        guard passcode.count <= maximumCount else {
            throw ProtectionError(
                .invalidArgument, "a passcode has at most \(maximumCount) bytes, this one has \(passcode.count)")
        }
        guard !passcode.withUnsafeBytes({ $0.contains(0) }) else {
            throw ProtectionError(.invalidArgument, "a passcode cannot contain a NUL byte")
        }
    }
}
