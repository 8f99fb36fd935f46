import Cryptography
import ProtectionModel
import SecretMemory

/// What is remembered about wrong passcodes: one slot of the attempt file. `docs/formats/attempts.md`.
struct AttemptRecord: Hashable, Sendable {
    /// Bytes of one slot: a write of one aligned sector is never torn.
    static let slotSize = 512
    /// Bytes of the file: two slots, written in turn.
    static let fileSize = 2 * slotSize
    static let magic = Array("cndtries".utf8)
    static let version: UInt32 = 1
    static let largestDigestCount = 8

    /// Rises with every write; its lowest bit says which slot it lies in.
    var counter: UInt64 = 0
    /// Tries since the last success that count for the delay: completed ones and interrupted ones.
    var tries: UInt32 = 0
    /// Completed wrong tries since the last success: they count for the erasure.
    var wrong: UInt32 = 0
    /// When the last try was, in milliseconds since the machine started.
    var bootMilliseconds: UInt64 = 0
    /// When the last try was, in seconds since 1970.
    var epochSeconds: Int64 = 0
    /// What the latest wrong passcodes gave, as HMACs, so that the same one again does not count. At most 8.
    var digests: [[UInt8]] = []

    /// True when there is nothing to remember.
    var isClean: Bool { tries == 0 && wrong == 0 && digests.isEmpty }

    func encoded(key: borrowing SecretBytes) throws(CryptographyError) -> [UInt8] {
        var bytes = Self.magic
        bytes += LittleEndian.bytes(Self.version)
        bytes += LittleEndian.bytes(UInt32(digests.count))
        bytes += LittleEndian.bytes(counter)
        bytes += LittleEndian.bytes(tries)
        bytes += LittleEndian.bytes(wrong)
        bytes += LittleEndian.bytes(bootMilliseconds)
        bytes += LittleEndian.bytes(UInt64(bitPattern: epochSeconds))
        bytes += digests.flatMap { $0 }
        bytes += [UInt8](repeating: 0, count: Self.slotSize - 32 - bytes.count)
        return bytes + (try Authenticator.authenticate(bytes, key: key))
    }

    /// Nil when the slot is not authentic or of another version.
    init?(decoding slot: [UInt8], key: borrowing SecretBytes) throws(CryptographyError) {
        guard slot.count == Self.slotSize else { return nil }
        let body = Array(slot[..<480])
        guard try Authenticator.verify(Array(slot[480...]), of: body, key: key), body.starts(with: Self.magic),
            LittleEndian.value(body[8..<12]) as UInt32 == Self.version
        else { return nil }
        let digestCount = Int(LittleEndian.value(body[12..<16]) as UInt32)
        guard digestCount <= Self.largestDigestCount else { return nil }
        counter = LittleEndian.value(body[16..<24])
        tries = LittleEndian.value(body[24..<28])
        wrong = LittleEndian.value(body[28..<32])
        bootMilliseconds = LittleEndian.value(body[32..<40])
        epochSeconds = Int64(bitPattern: LittleEndian.value(body[40..<48]))
        digests = (0..<digestCount).map { Array(body[(48 + 32 * $0)..<(80 + 32 * $0)]) }
        guard body[(48 + 32 * digestCount)...].allSatisfy({ $0 == 0 }) else { return nil }
    }

    init() {}
}

/// Apple's classic table (Apple Platform Security, "Passcodes"): how long to wait after so many tries in a row.
enum AttemptPolicy {
    /// Completed wrong tries after which an opted-in erasure happens.
    static let erasureThreshold: UInt32 = 10

    /// The longest delay, in seconds.
    static let longestDelay = 3600.0

    /// Seconds to wait before the next try.
    static func delay(afterTries tries: UInt32) -> Double {
        switch tries {
        case 0...4: 0
        case 5: 60
        case 6: 300
        case 7, 8: 900
        default: longestDelay
        }
    }
}

/// Whole numbers in files: least significant byte first.
enum LittleEndian {
    static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    /// The number that exactly these bytes spell.
    static func value<Number: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>) -> Number {
        bytes.reversed().reduce(Number(0)) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
}
