import COpenSSL
import ProtectionModel
import SecretMemory
import Synchronization

/// Cipher contexts and the room for nonces, for one user at a time.
///
/// A keyed context holds its key in the ordinary heap, so they are reset when the user is done: what waits in the pool
/// holds no key. They are pooled because making them costs as much as using them.
final class CipherContexts: @unchecked Sendable {
    /// For AES-256-ECB.
    let block: OpaquePointer
    /// True since ``block`` was given its cipher, without padding.
    private var isBlockSet = false
    /// For AES-256-GCM.
    let stream: OpaquePointer
    /// Random bytes that no nonce was made of yet.
    private var random = [UInt8](repeating: 0, count: CipherContexts.randomCapacity)
    private var randomUsed = CipherContexts.randomCapacity
    private let process: UInt

    /// A system call for each nonce would cost a fifth of sealing a chunk.
    private static let randomCapacity = 1008

    private init() throws(CryptographyError) {
        guard let block = EVP_CIPHER_CTX_new() else { throw .library(Library.errorText()) }
        guard let stream = EVP_CIPHER_CTX_new() else {
            EVP_CIPHER_CTX_free(block)
            throw .library(Library.errorText())
        }
        self.block = block
        self.stream = stream
        self.process = SecretMemory.processToken
    }

    deinit {
        EVP_CIPHER_CTX_free(block)
        EVP_CIPHER_CTX_free(stream)
    }

    /// Keys ``block`` with AES-256-ECB for one direction. A context keyed for one silently gives garbage in the other.
    func keyBlockCipher(_ key: borrowing SecretBytes, encrypting: Bool) throws(CryptographyError) {
        let cipher = isBlockSet ? nil : try Library.ecb.get()
        try key.withUnsafeBytes { (key) throws(CryptographyError) in
            try Library.check(
                EVP_CipherInit_ex2(
                    block, cipher, key.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, encrypting ? 1 : 0, nil))
        }
        if isBlockSet { return }
        try Library.check(EVP_CIPHER_CTX_set_padding(block, 0))
        isBlockSet = true
    }

    /// Keys ``block`` with a key on loan for as long as `body` runs. The loan ends after the key's schedule was written over.
    func withBlockCipher(
        lending lender: any FileKeyLease, _ body: () throws(CryptographyError) -> Void
    ) throws(CryptographyError) {
        let outcome: Result<Void, CryptographyError>
        do {
            outcome = try lender.withKey { key in
                Result { () throws(CryptographyError) in
                    defer { forgetBlockKey() }
                    try keyBlockCipher(key.bytes, encrypting: true)
                    try body()
                }
            }
        } catch let error as ProtectionError {
            throw .keyNotLent(error.code, error.message)
        } catch {
            throw .keyNotLent(.cryptography, "the key cannot be had: \(error)")
        }
        try outcome.get()
    }

    /// Writes the schedule of a key that is none over the one in ``block``: a tenth of what a reset costs.
    private func forgetBlockKey() {
        let done = Self.noKey.withUnsafeBufferPointer { EVP_CipherInit_ex2(block, nil, $0.baseAddress, nil, 1, nil) }
        if done != 1 {
            ERR_clear_error()
            EVP_CIPHER_CTX_reset(block)
            isBlockSet = false
        }
    }

    private static let noKey = [UInt8](repeating: 0, count: 32)

    /// Runs AES over whole blocks of 16 bytes in place, in the direction that ``block`` was keyed for.
    @inline(__always)
    func transformBlocks(_ blocks: UnsafeMutableRawBufferPointer) throws(CryptographyError) {
        let start = blocks.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var written: Int32 = 0
        try Library.check(EVP_CipherUpdate(block, start, &written, start, try Library.length(blocks.count)))
    }

    /// Writes fresh random bytes, at most ``randomCapacity``.
    func takeRandom(into target: UnsafeMutableRawBufferPointer) throws(CryptographyError) {
        if randomUsed + target.count > random.count {
            do {
                try random.withMutableBytes { (buffer) throws(SecretMemoryError) in try SystemRandom.fill(buffer) }
            } catch {
                throw .secretMemory(error)
            }
            randomUsed = 0
        }
        random.withUnsafeBytes { buffer in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[randomUsed..<(randomUsed + target.count)]))
        }
        randomUsed += target.count
    }

    // MARK: The pool

    private static let pool = Mutex<[CipherContexts]>([])
    private static let poolLimit = 64

    static func take() throws(CryptographyError) -> CipherContexts {
        // A forked child inherits the pool, and with it random bytes that its parent will use: it takes none of them.
        let process = SecretMemory.processToken
        let pooled: CipherContexts? = pool.withLock { pool in
            while let last = pool.popLast() {
                if last.process == process { return last }
            }
            return nil
        }
        if let pooled { return pooled }
        return try CipherContexts()
    }

    static func give(_ contexts: CipherContexts) {
        EVP_CIPHER_CTX_reset(contexts.block)
        contexts.isBlockSet = false
        EVP_CIPHER_CTX_reset(contexts.stream)
        pool.withLock { pool in
            if pool.count < poolLimit { pool.append(contexts) }
        }
    }
}
