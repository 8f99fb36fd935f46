/// Why secret memory could not be had.
public enum SecretMemoryError: Error, Sendable, Hashable {
    /// The system gave no memory, or no random bytes: with which `errno`. `EMSGSIZE` for more than
    /// ``SecretBytes/maximumCount`` bytes.
    case exhausted(errorNumber: Int32)
    /// A secret of no bytes was asked for.
    case empty
}
