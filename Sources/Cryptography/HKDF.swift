import SecretMemory

/// HKDF with SHA-256: RFC 5869. Thread-safe.
///
/// Written over HMAC, so that what it gives is made in secret memory; checked against the RFC's vectors.
public enum HKDF {
    /// Bytes of a pseudorandom key, as ``extract(salt:inputKey:)`` gives it.
    public static let keySize = 32
    /// The most bytes that ``expand(_:information:count:)`` gives.
    public static let maximumCount = 255 * 32

    /// The extract step with a secret salt. Throws `invalidKey` for an input key of zeros.
    public static func extract(
        salt: borrowing SecretBytes, inputKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try salt.withUnsafeBytes { (salt) throws(CryptographyError) -> SecretBytes in
            try extract(saltBytes: salt, inputKey: inputKey)
        }
    }

    /// The extract step with a public salt, which may be empty. Throws `invalidKey` for an input key of zeros.
    public static func extract(
        salt: [UInt8], inputKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try salt.withBytes { (salt) throws(CryptographyError) -> SecretBytes in
            try extract(saltBytes: salt, inputKey: inputKey)
        }
    }

    /// The expand step: 1 to ``maximumCount`` bytes. Throws `invalidKey` for a key of zeros, `invalidArgument` for
    /// another count.
    public static func expand(
        _ key: borrowing SecretBytes, information: [UInt8], count: Int
    ) throws(CryptographyError) -> SecretBytes {
        guard !key.isAllZero else { throw .invalidKey }
        guard count > 0, count <= maximumCount else { throw .invalidArgument("HKDF cannot give \(count) bytes") }
        var result = try makeSecret(count: count)
        if count == keySize {
            // The only size that the key schedule uses: one block, made in its place.
            try result.withUnsafeMutableBytes { (result) throws(CryptographyError) in
                try block(1, key, information: information, after: nil, into: result)
            }
            return result
        }
        var message = try makeSecret(count: keySize)
        let blocks = (count + keySize - 1) / keySize
        for number in 1...blocks {
            try message.withUnsafeMutableBytes { (message) throws(CryptographyError) in
                try block(
                    UInt8(number), key, information: information,
                    after: number == 1 ? nil : UnsafeRawBufferPointer(message), into: message)
            }
            let offset = (number - 1) * keySize
            message.withUnsafeBytes { message in
                result.withUnsafeMutableBytes { result in
                    let size = min(keySize, count - offset)
                    UnsafeMutableRawBufferPointer(rebasing: result[offset..<(offset + size)])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: message[..<size]))
                }
            }
        }
        return result
    }

    /// Both steps, with a secret salt.
    public static func derive(
        inputKey: borrowing SecretBytes, salt: borrowing SecretBytes, information: [UInt8], count: Int
    ) throws(CryptographyError) -> SecretBytes {
        try expand(try extract(salt: salt, inputKey: inputKey), information: information, count: count)
    }

    /// Both steps, with a public salt, which may be empty.
    public static func derive(
        inputKey: borrowing SecretBytes, salt: [UInt8], information: [UInt8], count: Int
    ) throws(CryptographyError) -> SecretBytes {
        try expand(try extract(salt: salt, inputKey: inputKey), information: information, count: count)
    }

    private static func extract(
        saltBytes: UnsafeRawBufferPointer, inputKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        guard !inputKey.isAllZero else { throw .invalidKey }
        var result = try makeSecret(count: keySize)
        try result.withUnsafeMutableBytes { (result) throws(CryptographyError) in
            try inputKey.withUnsafeBytes { (inputKey) throws(CryptographyError) in
                try HMAC.compute(key: saltBytes, inputKey, into: result)
            }
        }
        return result
    }

    /// T(number) of the RFC. `previous` may be the same place as `result`.
    private static func block(
        _ number: UInt8, _ key: borrowing SecretBytes, information: [UInt8], after previous: UnsafeRawBufferPointer?,
        into result: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        try key.withUnsafeBytes { (key) throws(CryptographyError) in
            try (information + [number]).withBytes { (message) throws(CryptographyError) in
                if let previous {
                    try HMAC.compute(key: key, previous, message, into: result)
                } else {
                    try HMAC.compute(key: key, message, into: result)
                }
            }
        }
    }
}
