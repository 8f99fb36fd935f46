import Cryptography
import LinuxSystem
import ProtectionModel

/// How much work one try of a passcode takes.
public enum PasscodeCost: Hashable, Sendable {
    /// Measured on this machine for about 80 ms (Apple Platform Security, "Passcodes"), never below
    /// `Scrypt.Cost.floor`.
    case calibrated
    /// Exactly this: for tests, and for people who know what they do. N is at most 2^15.
    case explicit(Scrypt.Cost)

    /// The time of one try that calibration aims at, in milliseconds.
    static let targetMilliseconds = 80.0

    /// True for a cost that a keybag may name: at most 64 MiB of memory, and no more time than some seconds, so that a
    /// damaged or hostile keybag cannot draw an unlock out.
    static func isAcceptable(_ cost: Scrypt.Cost) -> Bool { cost.isAllowed && cost.logN <= 15 }

    /// The cost to use. Throws `invalidArgument` for an explicit one out of bounds.
    func resolved(clock: any SystemClock) throws(ProtectionError) -> Scrypt.Cost {
        switch self {
        case .explicit(let cost):
            guard Self.isAcceptable(cost) else {
                throw ProtectionError(.invalidArgument, "this passcode cost is out of bounds")
            }
            return cost
        case .calibrated:
            return try translatingErrors { () throws(CryptographyError) in
                try Scrypt.calibrate(targetMilliseconds: Self.targetMilliseconds) { clock.secondsSinceBoot * 1000 }
            }
        }
    }
}
