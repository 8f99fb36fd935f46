import SecretMemory

/// AES-256 key wrap: RFC 3394, which is KW of NIST SP 800-38F.
///
/// The rounds are ours, over OpenSSL's AES: its own wrap does not use the processor's AES instructions, and would put
/// an unwrapped key into ordinary memory first. Tests hold it against OpenSSL's and the published vectors. Thread-safe.
public enum KeyWrap {
    /// Bytes that wrapping adds.
    public static let overhead = 8
    /// The most bytes that a wrapped key can have, overhead left out.
    public static let maximumKeySize = 4096
    private static let initialValue: UInt8 = 0xA6

    /// Wraps a key of a multiple of 8 bytes, at least 16, under one of 32.
    ///
    /// Throws `invalidKey` when either has another size or is all zeros.
    public static func wrap(
        _ key: borrowing SecretBytes, under wrappingKey: borrowing SecretBytes
    ) throws(CryptographyError) -> [UInt8] {
        try requireKey(wrappingKey)
        guard key.count % 8 == 0, key.count >= 16, key.count <= maximumKeySize, !key.isAllZero else {
            throw .invalidKey
        }
        // A block of 16 bytes to work in (the integrity value, then one register), then the registers.
        var workspace = try makeSecret(count: 16 + key.count)
        let contexts = try CipherContexts.take()
        defer { CipherContexts.give(contexts) }
        try contexts.keyBlockCipher(wrappingKey, encrypting: true)
        let keySize = key.count
        key.withUnsafeBytes { key in
            workspace.withUnsafeMutableBytes { workspace in
                UnsafeMutableRawBufferPointer(rebasing: workspace[16...]).copyMemory(from: key)
            }
        }
        return try workspace.withUnsafeMutableBytes { (workspace) throws(CryptographyError) -> [UInt8] in
            guard let block = workspace.baseAddress else { throw .invalidKey }
            for index in 0..<8 { workspace[index] = initialValue }
            let registers = keySize / 8
            for step in 1...(6 * registers) {
                let register = block + 16 + 8 * ((step - 1) % registers)
                (block + 8).copyMemory(from: register, byteCount: 8)
                try contexts.transformBlocks(UnsafeMutableRawBufferPointer(start: block, count: 16))
                mixCounter(step, into: block)
                register.copyMemory(from: block + 8, byteCount: 8)
            }
            return [UInt8](workspace[..<8]) + [UInt8](workspace[16...])
        }
    }

    /// Unwraps what ``wrap(_:under:)`` gave, straight into secret memory.
    ///
    /// Throws `authenticationFailed` when it was not wrapped under this key, `invalidArgument` for a size that no wrap
    /// has, `invalidKey` for an unfit wrapping key or when the wrapped key is all zeros.
    public static func unwrap(
        _ wrapped: [UInt8], under wrappingKey: borrowing SecretBytes
    ) throws(CryptographyError) -> SecretBytes {
        try requireKey(wrappingKey)
        guard wrapped.count % 8 == 0, wrapped.count >= 24, wrapped.count <= maximumKeySize + overhead else {
            throw .invalidArgument("a wrapped key cannot have \(wrapped.count) bytes")
        }
        var result = try makeSecret(count: wrapped.count - overhead)
        var workspace = try makeSecret(count: 16)
        let contexts = try CipherContexts.take()
        defer { CipherContexts.give(contexts) }
        try contexts.keyBlockCipher(wrappingKey, encrypting: false)
        let isAuthentic = try result.withUnsafeMutableBytes { (result) throws(CryptographyError) -> Bool in
            result.copyBytes(from: wrapped[overhead...])
            return try workspace.withUnsafeMutableBytes { (workspace) throws(CryptographyError) -> Bool in
                guard let block = workspace.baseAddress, let start = result.baseAddress else { throw .invalidKey }
                workspace.copyBytes(from: wrapped[..<8])
                let registers = result.count / 8
                for step in stride(from: 6 * registers, through: 1, by: -1) {
                    let register = start + 8 * ((step - 1) % registers)
                    mixCounter(step, into: block)
                    (block + 8).copyMemory(from: register, byteCount: 8)
                    try contexts.transformBlocks(UnsafeMutableRawBufferPointer(start: block, count: 16))
                    register.copyMemory(from: block + 8, byteCount: 8)
                }
                var difference: UInt8 = 0
                for index in 0..<8 { difference |= workspace[index] ^ initialValue }
                return difference == 0
            }
        }
        guard isAuthentic else { throw .authenticationFailed }
        guard !result.isAllZero else { throw .invalidKey }
        return result
    }

    /// Xors the step's number, big-endian, into the integrity value.
    @inline(__always)
    private static func mixCounter(_ step: Int, into block: UnsafeMutableRawPointer) {
        let value = block.loadUnaligned(as: UInt64.self) ^ UInt64(step).bigEndian
        block.storeBytes(of: value, as: UInt64.self)
    }
}
