import SecretMemory

@testable import Cryptography

/// The bytes of a secret, in ordinary memory: for known answers alone.
func revealed(_ secret: borrowing SecretBytes) -> [UInt8] {
    secret.withUnsafeBytes { [UInt8]($0) }
}

/// A secret with bytes that everybody knows.
func secret(_ bytes: [UInt8]) throws -> SecretBytes {
    try bytes.span.withUnsafeBytes { try SecretBytes(copying: $0) }
}

/// 32 bytes that count up from `start`.
func pattern(_ start: UInt8) -> [UInt8] {
    (0..<32).map { start &+ $0 }
}

/// A chunk and what sealing it gives, as arrays.
struct SealedChunk: Equatable {
    var ciphertext: [UInt8]
    var seal: [UInt8]
}

extension ChunkCipher {
    mutating func seal(_ plaintext: [UInt8], associatedData: [UInt8] = []) throws(CryptographyError) -> SealedChunk {
        var sealed = SealedChunk(
            ciphertext: [UInt8](repeating: 0xEE, count: plaintext.count),
            seal: [UInt8](repeating: 0xEE, count: ChunkCipher.sealSize))
        try plaintext.withBytes { (plaintext) throws(CryptographyError) in
            try associatedData.withBytes { (associatedData) throws(CryptographyError) in
                try sealed.ciphertext.withMutableBytes { (ciphertext) throws(CryptographyError) in
                    try sealed.seal.withMutableBytes { (seal) throws(CryptographyError) in
                        try self.seal(plaintext, associatedData: associatedData, into: ciphertext, seal: seal)
                    }
                }
            }
        }
        return sealed
    }

    mutating func seal(
        _ plaintext: [UInt8], nonce: [UInt8], associatedData: [UInt8]
    ) throws(CryptographyError) -> SealedChunk {
        var sealed = SealedChunk(ciphertext: [UInt8](repeating: 0xEE, count: plaintext.count), seal: [])
        var tag = [UInt8](repeating: 0xEE, count: ChunkCipher.tagSize)
        try plaintext.withBytes { (plaintext) throws(CryptographyError) in
            try associatedData.withBytes { (associatedData) throws(CryptographyError) in
                try nonce.withBytes { (nonce) throws(CryptographyError) in
                    try sealed.ciphertext.withMutableBytes { (ciphertext) throws(CryptographyError) in
                        try tag.withMutableBytes { (tag) throws(CryptographyError) in
                            try self.seal(
                                plaintext, nonce: nonce, associatedData: associatedData, into: ciphertext, tag: tag)
                        }
                    }
                }
            }
        }
        sealed.seal = nonce + tag
        return sealed
    }

    /// Opens into `plaintext`, whose bytes a failure leaves to be looked at.
    mutating func open(
        _ sealed: SealedChunk, associatedData: [UInt8] = [], into plaintext: inout [UInt8]
    ) throws(CryptographyError) {
        try sealed.ciphertext.withBytes { (ciphertext) throws(CryptographyError) in
            try sealed.seal.withBytes { (seal) throws(CryptographyError) in
                try associatedData.withBytes { (associatedData) throws(CryptographyError) in
                    try plaintext.withMutableBytes { (plaintext) throws(CryptographyError) in
                        try self.open(ciphertext, seal: seal, associatedData: associatedData, into: plaintext)
                    }
                }
            }
        }
    }

    mutating func open(_ sealed: SealedChunk, associatedData: [UInt8] = []) throws(CryptographyError) -> [UInt8] {
        var plaintext = [UInt8](repeating: 0xEE, count: sealed.ciphertext.count)
        try open(sealed, associatedData: associatedData, into: &plaintext)
        return plaintext
    }
}
