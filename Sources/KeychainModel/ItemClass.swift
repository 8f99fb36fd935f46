/// What an item is. The raw value is Apple's string (`kSecClass…`).
public enum ItemClass: String, CaseIterable, Sendable, Hashable {
    case genericPassword = "genp"
    case internetPassword = "inet"
    case certificate = "cert"
    case key = "keys"
    /// A certificate with its private key. Nothing of it is stored: it is the join of the two.
    case identity = "idnt"

    /// The classes that have rows of their own.
    public static let stored: [ItemClass] = [.genericPassword, .internetPassword, .certificate, .key]
}
