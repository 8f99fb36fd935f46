import Cryptography
import LinuxSystem
import ProtectionModel

extension Keybag {
    /// The identifier that the keybag of a home claims: read without any key and therefore a claim, not a proof. Enough to
    /// tell one's own key records from those of another keybag.
    ///
    /// Throws `noKeybag` when there is none, and `damaged(keybag)` when no copy decodes.
    public static func claimedIdentifier(
        in home: KeybagHome, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> KeybagIdentifier {
        guard let first = try KeybagStore.claimedIdentifiers(in: home, system).first else {
            throw ProtectionError(.damaged(.keybag), "the keybag claims no identifier", path: home.keybag)
        }
        return first
    }
}

extension PasscodeCost {
    /// The cost scrypt(N = 2^`logarithm`, r = 8, p = 1). Throws `invalidArgument` when it is out of bounds.
    public static func logarithm(_ logarithm: Int) throws(ProtectionError) -> PasscodeCost {
        guard let logN = UInt8(exactly: logarithm), isAcceptable(Scrypt.Cost(logN: logN, r: 8, p: 1)) else {
            throw ProtectionError(.invalidArgument, "the passcode cost \(logarithm) is out of bounds: 1 to 15")
        }
        return .explicit(Scrypt.Cost(logN: logN, r: 8, p: 1))
    }
}
