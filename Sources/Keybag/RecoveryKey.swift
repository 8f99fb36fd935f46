import Cryptography
import ProtectionModel
import SecretMemory

/// What a person keeps on paper: 160 random bits from which everything that recovery needs is derived. Shown once, when
/// it is made; nothing that lies on disk leads back to it.
public struct RecoveryKey: ~Copyable, Sendable {
    /// Random bytes in a recovery key.
    static let seedSize = 20
    /// Symbols of the text: 32 for the seed and 4 to find typing errors.
    static let symbolCount = 36
    static let groupSize = 4
    /// Bytes of the text with its hyphens.
    public static let textSize = symbolCount + symbolCount / groupSize - 1
    /// Longer texts are not even looked at.
    static let longestText = 256
    /// Douglas Crockford's base 32: no letter that looks like a digit.
    static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    private static let checkLabel = Array("candado recovery key text".utf8)

    let seed: SecretBytes

    private init(seed: consuming SecretBytes) { self.seed = seed }

    /// A fresh recovery key. Throws `secretMemory`.
    public static func generate() throws(ProtectionError) -> RecoveryKey {
        RecoveryKey(
            seed: try translatingErrors { () throws(SecretMemoryError) in try SecretBytes.random(count: seedSize) })
    }

    /// Reads the text form. Case does not matter; hyphens and white space are passed over; O counts as 0, I and L as 1.
    ///
    /// Throws `wrongPasscode` when a symbol is mistyped, missing or too many.
    public init(text: borrowing SecretBytes) throws(ProtectionError) {
        guard text.count <= Self.longestText else { throw Self.mistyped }
        var symbols = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: Self.symbolCount) }
        let isComplete = symbols.withUnsafeMutableBytes { symbols in
            text.withUnsafeBytes { text in Self.read(text, into: symbols) }
        }
        guard isComplete else { throw Self.mistyped }
        var seed = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: Self.seedSize) }
        seed.withUnsafeMutableBytes { seed in
            symbols.withUnsafeBytes { symbols in
                for group in 0..<4 {
                    let bits = (0..<8).reduce(UInt64(0)) { $0 << 5 | UInt64(symbols[8 * group + $1]) }
                    for index in 0..<5 {
                        seed[5 * group + index] = UInt8(truncatingIfNeeded: bits >> (32 - 8 * UInt64(index)))
                    }
                }
            }
        }
        guard !seed.isAllZero else { throw Self.mistyped }
        let expected = try Self.checkSymbols(of: seed)
        let isRight = symbols.withUnsafeBytes { symbols in
            (0..<4).allSatisfy { symbols[32 + $0] == expected[$0] }
        }
        guard isRight else { throw Self.mistyped }
        self.seed = seed
    }

    private static let mistyped = ProtectionError(
        .wrongPasscode, "this is not a recovery key: it has 36 letters and digits, and a check finds typing errors")

    /// The text form to show once: nine groups of four symbols with hyphens between them, ``textSize`` ASCII bytes.
    public borrowing func text() throws(ProtectionError) -> SecretBytes {
        let check = try Self.checkSymbols(of: seed)
        var text = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: Self.textSize) }
        text.withUnsafeMutableBytes { text in
            seed.withUnsafeBytes { seed in
                for position in 0..<Self.symbolCount {
                    let place = position + position / Self.groupSize
                    if position % Self.groupSize == 0, position > 0 { text[place - 1] = UInt8(ascii: "-") }
                    if position >= 32 {
                        text[place] = Self.alphabet[Int(check[position - 32])]
                        continue
                    }
                    let group = position / 8
                    let bits = (0..<5).reduce(UInt64(0)) { $0 << 8 | UInt64(seed[5 * group + $1]) }
                    text[place] = Self.alphabet[Int(bits >> (35 - 5 * UInt64(position % 8)) & 31)]
                }
            }
        }
        return text
    }

    private static func read(_ text: UnsafeRawBufferPointer, into symbols: UnsafeMutableRawBufferPointer) -> Bool {
        var count = 0
        for character in text {
            let symbol: UInt8
            switch character {
            case UInt8(ascii: "-"), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                continue
            case UInt8(ascii: "O"), UInt8(ascii: "o"): symbol = 0
            case UInt8(ascii: "I"), UInt8(ascii: "i"), UInt8(ascii: "L"), UInt8(ascii: "l"): symbol = 1
            default:
                let isLower = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
                guard let index = alphabet.firstIndex(of: isLower ? character - 32 : character) else { return false }
                symbol = UInt8(index)
            }
            guard count < symbols.count else { return false }
            symbols[count] = symbol
            count += 1
        }
        return count == symbols.count
    }

    /// 20 bits of an HMAC whose key is the seed: they find typing errors and say nothing that helps to guess the rest.
    private static func checkSymbols(of seed: borrowing SecretBytes) throws(ProtectionError) -> [UInt8] {
        let code = try translatingErrors { () throws(CryptographyError) in
            try Authenticator.authenticate(checkLabel, key: seed)
        }
        let bits = UInt32(code[0]) << 16 | UInt32(code[1]) << 8 | UInt32(code[2])
        return (0..<4).map { UInt8(bits >> (19 - 5 * UInt32($0)) & 31) }
    }

    /// The 32 bytes that the key schedule starts from: the seed through HKDF's extract step.
    private borrowing func key() throws(CryptographyError) -> SecretBytes {
        try HKDF.extract(salt: [UInt8](), inputKey: seed)
    }

    borrowing func keyPair() throws(CryptographyError) -> KeyAgreement.KeyPair {
        try KeySchedule.recoveryKeyPair(recoveryKey: try key())
    }

    borrowing func slotKey() throws(CryptographyError) -> SecretBytes {
        try KeySchedule.recoverySlotKey(recoveryKey: try key())
    }

    borrowing func authenticationKey() throws(CryptographyError) -> SecretBytes {
        try KeySchedule.recoveryAuthenticationKey(recoveryKey: try key())
    }
}
