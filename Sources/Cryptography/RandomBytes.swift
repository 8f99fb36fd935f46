import SecretMemory

/// Random bytes that are not secret: salts, identifiers. Keys come from ``SecretBytes/random(count:)``. Thread-safe.
public enum RandomBytes {
    /// `count` bytes from the kernel. Throws when it gives none.
    public static func bytes(_ count: Int) throws(CryptographyError) -> [UInt8] {
        guard count >= 0 else { throw .invalidArgument("\(count) random bytes") }
        var result = [UInt8](repeating: 0, count: count)
        do {
            try result.withMutableBytes { (buffer) throws(SecretMemoryError) in try SystemRandom.fill(buffer) }
        } catch {
            throw .secretMemory(error)
        }
        return result
    }
}
