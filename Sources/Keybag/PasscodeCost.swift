import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory

/// How much work one try of a passcode takes.
public enum PasscodeCost: Hashable, Sendable {
    /// Measured on this machine for about 80 ms (Apple Platform Security, "Passcodes"), never below the floor
    /// N = 2^14, r = 8, p = 1.
    case calibrated
    /// Exactly this: for tests, and for people who know what they do. N is 2^1 to 2^15, r is 1 to 8, p is 1 to 64.
    case explicit(Scrypt.Cost)

    /// The time of one try that calibration aims at, in seconds.
    static let target = 0.08
    static let floor = Scrypt.Cost(logN: 14, r: 8, p: 1)

    /// True for a cost that a keybag may name: at most 32 MiB of memory, and time that a damaged or hostile keybag cannot
    /// draw out for minutes.
    static func isAcceptable(_ cost: Scrypt.Cost) -> Bool {
        (1...15).contains(cost.logN) && (1...8).contains(cost.r) && (1...64).contains(cost.p)
    }

    /// The cost to use. Throws `invalidArgument` for an explicit one out of bounds.
    func resolved(clock: any SystemClock) throws(ProtectionError) -> Scrypt.Cost {
        switch self {
        case .explicit(let cost):
            guard Self.isAcceptable(cost) else {
                throw ProtectionError(.invalidArgument, "this passcode cost is out of bounds")
            }
            return cost
        case .calibrated:
            let trial = Scrypt.Cost(logN: 15, r: 8, p: 1)
            let seconds = try translatingErrors { () throws(CryptographyError) in
                let passcode = try SecretBytes.forCalibration()
                let start = clock.secondsSinceBoot
                _ = try Scrypt.derive(passcode: passcode, salt: [UInt8](repeating: 0, count: 32), cost: trial, count: 32)
                return clock.secondsSinceBoot - start
            }
            return Self.choose(secondsForTrial: seconds)
        }
    }

    /// N = 2^15 with as many rounds as come nearest to the target; the floor on a machine where one takes twice as long.
    static func choose(secondsForTrial seconds: Double) -> Scrypt.Cost {
        if seconds > 2 * target { return floor }
        guard seconds > 0 else { return Scrypt.Cost(logN: 15, r: 8, p: 1) }
        let rounds = (target / seconds).rounded()
        return Scrypt.Cost(logN: 15, r: 8, p: UInt32(min(max(rounds, 1), 16)))
    }
}

extension SecretBytes {
    /// Bytes that no secret depends on.
    fileprivate static func forCalibration() throws(CryptographyError) -> SecretBytes {
        do {
            return try SecretBytes(count: 8)
        } catch {
            throw .secretMemory(error)
        }
    }
}
