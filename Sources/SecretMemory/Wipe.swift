import Glibc

/// Clears ordinary memory that held plaintext, in a way that the optimiser does not leave out.
public enum Wipe {
    /// Sets every byte of the buffer to zero.
    public static func clear(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress, !buffer.isEmpty else { return }
        explicit_bzero(base, buffer.count)
    }
}
