import COpenSSL
import SecretMemory

/// scrypt: RFC 7914. Thread-safe.
public enum Scrypt {
    /// The most memory that a derivation may need, in bytes: 64 MiB.
    public static let maximumMemory = 64 << 20
    /// The most work that a derivation may need, as the product N r p: 64 times the largest memory's worth of r = 8.
    public static let maximumWork: UInt64 = 1 << 24

    /// What a derivation costs. N is 2 to the power of `logN`.
    public struct Cost: Sendable, Hashable {
        /// The base-2 logarithm of N, the number of blocks in memory.
        public let logN: UInt8
        /// The size of a block, in 128 bytes.
        public let r: UInt32
        /// How often the whole is done.
        public let p: UInt32

        /// A cost. ``isAllowed`` says whether ``Scrypt/derive(passcode:salt:cost:count:)`` takes it.
        public init(logN: UInt8, r: UInt32, p: UInt32) {
            self.logN = logN
            self.r = r
            self.p = p
        }

        /// The least that ``Scrypt/calibrate(targetMilliseconds:milliseconds:)`` chooses.
        public static let floor = Cost(logN: 14, r: 8, p: 1)

        /// Bytes of memory that the derivation needs: 128 r (N + p + 2).
        public var memory: UInt64 {
            guard logN < 32 else { return .max }
            let blocks = (UInt64(1) << UInt64(logN)) + UInt64(p) + 2
            let (bytes, overflow) = (128 * UInt64(r)).multipliedReportingOverflow(by: blocks)
            return overflow ? .max : bytes
        }

        /// The product N r p, which the time is proportional to.
        public var work: UInt64 {
            guard logN < 32 else { return .max }
            let (product, overflow) = (UInt64(r) * UInt64(p)).multipliedReportingOverflow(by: UInt64(1) << UInt64(logN))
            return overflow ? .max : product
        }

        /// True for what the standard allows and this module is willing to do: a hostile file that names its own cost
        /// can demand no more than ``Scrypt/maximumMemory`` and ``Scrypt/maximumWork``.
        public var isAllowed: Bool {
            logN >= 1 && logN < 32 && r >= 1 && p >= 1 && memory <= UInt64(maximumMemory) && work <= maximumWork
                && UInt64(logN) < 16 * UInt64(r)
        }
    }

    /// Derives `count` bytes, 1 to 1024, from a passcode. Takes tens of milliseconds by intent.
    ///
    /// Throws `invalidArgument` for another count or a cost that is not allowed.
    public static func derive(
        passcode: borrowing SecretBytes, salt: [UInt8], cost: Cost, count: Int
    ) throws(CryptographyError) -> SecretBytes {
        try passcode.withUnsafeBytes { (passcode) throws(CryptographyError) -> SecretBytes in
            try derive(passcodeBytes: passcode, salt: salt, cost: cost, count: count)
        }
    }

    /// The same for a passcode that may be empty, as one published vector has it.
    static func derive(
        passcodeBytes: UnsafeRawBufferPointer, salt: [UInt8], cost: Cost, count: Int
    ) throws(CryptographyError) -> SecretBytes {
        guard cost.isAllowed else {
            throw .invalidArgument("scrypt cost N=2^\(cost.logN) r=\(cost.r) p=\(cost.p) is outside the limits")
        }
        guard count > 0, count <= 1024 else { throw .invalidArgument("cannot derive \(count) bytes") }
        guard let context = EVP_KDF_CTX_new(try Library.scrypt.get()) else { throw .library(Library.errorText()) }
        // OpenSSL zeroes its copy of the passcode and its tables when it is done.
        defer { EVP_KDF_CTX_free(context) }
        var result = try makeSecret(count: count)
        // PBKDF2, the last step, leaves its last block on the stack: that is, the key.
        defer { SecretMemory.clearStack() }
        try result.withUnsafeMutableBytes { (result) throws(CryptographyError) in
            try salt.withBytes { (salt) throws(CryptographyError) in
                // OpenSSL tells a missing value from an empty one by its address.
                var none: UInt8 = 0
                try withUnsafeBytes(of: &none) { (none) throws(CryptographyError) in
                    let empty = UnsafeRawBufferPointer(rebasing: none[..<0])
                    let parameters = Parameters()
                    parameters.add(OSSL_KDF_PARAM_PASSWORD, octets: passcodeBytes.isEmpty ? empty : passcodeBytes)
                    parameters.add(OSSL_KDF_PARAM_SALT, octets: salt.isEmpty ? empty : salt)
                    parameters.add(OSSL_KDF_PARAM_SCRYPT_N, number: UInt64(1) << UInt64(cost.logN))
                    parameters.add(OSSL_KDF_PARAM_SCRYPT_R, number: UInt64(cost.r))
                    parameters.add(OSSL_KDF_PARAM_SCRYPT_P, number: UInt64(cost.p))
                    parameters.add(OSSL_KDF_PARAM_SCRYPT_MAXMEM, number: UInt64(maximumMemory) + (1 << 20))
                    try parameters.use { (list) throws(CryptographyError) in
                        try Library.check(
                            EVP_KDF_derive(
                                context, result.baseAddress?.assumingMemoryBound(to: UInt8.self), result.count, list))
                    }
                }
            }
        }
        return result
    }

    /// Chooses a cost that takes about `targetMilliseconds` on this machine: N = 2^14 or 2^15 and r = 8, so that 64 MiB
    /// of memory are enough, and the rest through p. Never less than ``Cost/floor``.
    ///
    /// `milliseconds` reads a clock that only rises. Throws what ``derive(passcode:salt:cost:count:)`` throws.
    public static func calibrate(
        targetMilliseconds: Double, milliseconds: () -> Double
    ) throws(CryptographyError) -> Cost {
        let sample = try makeSecret(count: 16)
        var fastest = Double.infinity
        for _ in 0..<3 {
            let start = milliseconds()
            _ = try derive(passcode: sample, salt: [], cost: .floor, count: 32)
            fastest = min(fastest, milliseconds() - start)
        }
        return chosen(targetMilliseconds: targetMilliseconds, floorMilliseconds: fastest)
    }

    /// The cost for a machine on which ``Cost/floor`` takes `floorMilliseconds`.
    static func chosen(targetMilliseconds: Double, floorMilliseconds: Double) -> Cost {
        guard floorMilliseconds > 0, targetMilliseconds.isFinite, floorMilliseconds.isFinite else { return .floor }
        let multiple = targetMilliseconds / floorMilliseconds
        // 1.5 is where twice the work comes nearer to the target than once.
        guard multiple >= 1.5 else { return .floor }
        let repetitions = min(max((multiple / 2).rounded(), 1), 64)
        return Cost(logN: 15, r: 8, p: UInt32(repetitions))
    }
}
