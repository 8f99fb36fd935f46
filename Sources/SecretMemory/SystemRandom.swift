import CLinux

/// Random bytes from the kernel.
public enum SystemRandom {
    /// Fills the buffer with `getrandom`. Throws when the kernel gives none. Thread-safe.
    public static func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(SecretMemoryError) {
        guard let address = buffer.baseAddress, buffer.count > 0 else { return }
        let errorNumber = candado_random(address, buffer.count)
        guard errorNumber == 0 else { throw .exhausted(errorNumber: errorNumber) }
    }
}
