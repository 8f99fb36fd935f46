import Cryptography
import KeychainModel
import ProtectionModel
import SecretMemory

/// Seals rows under class keys. `docs/formats/keychain.md` is the form to the byte. Thread-safe.
package final class SealedProtection: ItemProtection {
    static let version: UInt8 = 1
    /// Version and pair number.
    static let prefixSize = 1 + pairSize
    static let pairSize = 16
    static let wrapSize = ChunkCipher.keySize + KeyWrap.overhead
    /// Secrets are padded to a multiple of this, their length included: the file shows sizes in steps.
    static let paddingStep = 64
    private static let lengthSize = 4

    private let keys: any ItemKeyService

    package init(keys: any ItemKeyService) { self.keys = keys }

    package var keybagIdentifier: KeybagIdentifier { keys.keybagIdentifier }

    package func requireSealing(_ accessibility: Accessibility) throws(KeychainError) {
        try keys.withItemKeys(of: accessibility, generation: nil) { _ in }
    }

    // MARK: Sealing

    package func seal(
        _ attributes: ItemDictionary, _ secret: ItemSecret?, _ header: inout ItemHeader
    ) throws(KeychainError) -> ItemContent {
        var plaintext = try SealedAttributes.encode(attributes)
        defer { plaintext.wipe() }
        guard let secret else { return try seal(plaintext, padded: nil, &header) }
        // Before the keys are asked for: a lock waits for whoever has them, and a large room takes the kernel milliseconds.
        let padded = try Self.pad(secret)
        return try padded.withUnsafeBytes { (padded) throws(KeychainError) in
            try seal(plaintext, padded: padded, &header)
        }
    }

    private func seal(
        _ plaintext: [UInt8], padded: UnsafeRawBufferPointer?, _ header: inout ItemHeader
    ) throws(KeychainError) -> ItemContent {
        let pair = try translatingErrors { () throws(CryptographyError) in try RandomBytes.bytes(Self.pairSize) }
        var sealed = header
        let content = try keys.withItemKeys(of: header.accessibility, generation: nil) {
            (keys) throws(KeychainError) in
            sealed.generation = keys.generation
            return try Self.seal(plaintext, padded, sealed, pair, keys)
        }
        header = sealed
        return content
    }

    private static func seal(
        _ plaintext: [UInt8], _ secret: UnsafeRawBufferPointer?, _ header: ItemHeader, _ pair: [UInt8],
        _ keys: borrowing ItemKeys
    ) throws(KeychainError) -> ItemContent {
        let associated = metadataBinding(header, pair: pair, hasSecret: secret != nil)
        let sealed = try plaintext.withRawBytes { (plaintext) throws(KeychainError) in
            try seal(plaintext, under: keys.metadata, associated)
        }
        let metadata = [version] + pair + sealed
        guard let secret else { return .sealed(metadata: metadata, secret: nil) }
        return .sealed(
            metadata: metadata, secret: try seal(secret, header, pair, metadata: metadata, keys))
    }

    private static func seal(
        _ padded: UnsafeRawBufferPointer, _ header: ItemHeader, _ pair: [UInt8], metadata: [UInt8],
        _ keys: borrowing ItemKeys
    ) throws(KeychainError) -> [UInt8] {
        let key = try random(ChunkCipher.keySize)
        let wrap = try wrap(key, under: keys.secretWrapping)
        let associated = secretBinding(header, pair: pair, metadata: metadata)
        return [version] + pair + wrap + (try seal(padded, under: key, associated))
    }

    private static func random(_ count: Int) throws(KeychainError) -> SecretBytes {
        do throws(SecretMemoryError) { return try SecretBytes.random(count: count) } catch {
            throw KeychainError(.outOfMemory, "there is no memory for a key", cause: error)
        }
    }

    private static func wrap(
        _ key: borrowing SecretBytes, under wrappingKey: borrowing SecretBytes
    ) throws(KeychainError) -> [UInt8] {
        do throws(CryptographyError) { return try KeyWrap.wrap(key, under: wrappingKey) } catch {
            throw KeychainError(error)
        }
    }

    /// The seal, then the ciphertext.
    private static func seal(
        _ plaintext: UnsafeRawBufferPointer, under key: borrowing SecretBytes, _ associated: [UInt8]
    ) throws(KeychainError) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: ChunkCipher.sealSize + plaintext.count)
        do throws(CryptographyError) { try seal(plaintext, under: key, associated, into: &result) } catch {
            throw KeychainError(error)
        }
        return result
    }

    private static func seal(
        _ plaintext: UnsafeRawBufferPointer, under key: borrowing SecretBytes, _ associated: [UInt8],
        into result: inout [UInt8]
    ) throws(CryptographyError) {
        var cipher = try ChunkCipher(key: key)
        try associated.withRawBytes { (associated) throws(CryptographyError) in
            try result.withMutableRawBytes { (result) throws(CryptographyError) in
                try cipher.seal(
                    plaintext, associatedData: associated,
                    into: UnsafeMutableRawBufferPointer(rebasing: result[ChunkCipher.sealSize...]),
                    seal: UnsafeMutableRawBufferPointer(rebasing: result[..<ChunkCipher.sealSize]))
            }
        }
    }

    // MARK: Opening

    package func attributes(of row: ItemRow) throws(KeychainError) -> ItemDictionary {
        let attributes = try openAttributes(of: row)
        try check(row, attributes)
        return attributes
    }

    /// Opens the attributes without a look at the digests beside them, which another device key may have made.
    func openAttributes(of row: ItemRow) throws(KeychainError) -> ItemDictionary {
        let (metadata, secret) = try Self.halves(of: row)
        let pair = try Self.pair(of: metadata)
        let associated = Self.metadataBinding(row.header, pair: pair, hasSecret: secret != nil)
        let header = row.header
        let attributes = try keys.withItemKeys(of: header.accessibility, generation: header.generation) {
            (keys) throws(KeychainError) in
            try Self.openAttributes(metadata, under: keys.metadata, associated)
        }
        guard let attributes else { throw Self.undecodable }
        return attributes
    }

    private static func openAttributes(
        _ metadata: [UInt8], under key: borrowing SecretBytes, _ associated: [UInt8]
    ) throws(KeychainError) -> ItemDictionary? {
        let size = metadata.count - prefixSize - ChunkCipher.sealSize
        guard size >= 0, size <= SealedAttributes.maximumSize else { throw undecodable }
        var plaintext = [UInt8](repeating: 0, count: size)
        defer { plaintext.wipe() }
        try plaintext.withMutableRawBytes { (plaintext) throws(KeychainError) in
            try open(metadata, from: prefixSize, under: key, associated, into: plaintext)
        }
        return plaintext.withRawBytes { SealedAttributes.decode($0) }
    }

    /// The attributes are opened too: without a look at them, a row that was given another one's digests would pass for
    /// that one.
    package func secret(of row: ItemRow) throws(KeychainError) -> ItemSecret? {
        _ = try attributes(of: row)
        return try openSecret(of: row)
    }

    /// Opens the secret without a look at digests.
    func openSecret(of row: ItemRow) throws(KeychainError) -> ItemSecret? {
        let (metadata, secret) = try Self.halves(of: row)
        guard let secret else {
            // That there is none stands in the attributes' seal alone.
            _ = try openAttributes(of: row)
            return nil
        }
        let pair = try Self.pair(of: metadata)
        guard try Self.pair(of: secret) == pair, secret.count >= Self.prefixSize + Self.wrapSize else {
            throw Self.undecodable
        }
        let header = row.header
        let associated = Self.secretBinding(header, pair: pair, metadata: metadata)
        let size = secret.count - Self.prefixSize - Self.wrapSize - ChunkCipher.sealSize
        guard size >= Self.paddingStep, size % Self.paddingStep == 0 else { throw Self.undecodable }
        // Before the keys, as in sealing.
        var padded = try secretRoom(size)
        try padded.withUnsafeMutableBytes { (padded) throws(KeychainError) in
            try keys.withItemKeys(of: header.accessibility, generation: header.generation) {
                (keys) throws(KeychainError) in
                try Self.openSecret(secret, under: keys.secretWrapping, associated, into: padded)
            }
        }
        return try padded.withUnsafeBytes { (padded) throws(KeychainError) in try Self.unpad(padded) }
    }

    private static func openSecret(
        _ bytes: [UInt8], under wrappingKey: borrowing SecretBytes, _ associated: [UInt8],
        into padded: UnsafeMutableRawBufferPointer
    ) throws(KeychainError) {
        let end = prefixSize + wrapSize
        let key = try unwrap(Array(bytes[prefixSize..<end]), under: wrappingKey)
        try open(bytes, from: end, under: key, associated, into: padded)
    }

    private static func unwrap(
        _ wrap: [UInt8], under wrappingKey: borrowing SecretBytes
    ) throws(KeychainError) -> SecretBytes {
        do throws(CryptographyError) { return try KeyWrap.unwrap(wrap, under: wrappingKey) } catch {
            throw KeychainError(error)
        }
    }

    private static func open(
        _ bytes: [UInt8], from start: Int, under key: borrowing SecretBytes, _ associated: [UInt8],
        into plaintext: UnsafeMutableRawBufferPointer
    ) throws(KeychainError) {
        do throws(CryptographyError) {
            try openChunk(bytes, from: start, under: key, associated, into: plaintext)
        } catch {
            throw KeychainError(error)
        }
    }

    private static func openChunk(
        _ bytes: [UInt8], from start: Int, under key: borrowing SecretBytes, _ associated: [UInt8],
        into plaintext: UnsafeMutableRawBufferPointer
    ) throws(CryptographyError) {
        var cipher = try ChunkCipher(key: key)
        try associated.withRawBytes { (associated) throws(CryptographyError) in
            try bytes.withRawBytes { (bytes) throws(CryptographyError) in
                let middle = start + ChunkCipher.sealSize
                try cipher.open(
                    UnsafeRawBufferPointer(rebasing: bytes[middle...]),
                    seal: UnsafeRawBufferPointer(rebasing: bytes[start..<middle]), associatedData: associated,
                    into: plaintext)
            }
        }
    }

    // MARK: Padding

    /// The length, the secret, and zeros up to a multiple of ``paddingStep``.
    private static func pad(_ secret: ItemSecret) throws(KeychainError) -> SecretBytes {
        let used = lengthSize + secret.count
        var padded = try secretRoom((used + paddingStep - 1) / paddingStep * paddingStep)
        padded.withUnsafeMutableBytes { padded in
            padded.storeBytes(of: UInt32(secret.count).bigEndian, as: UInt32.self)
            secret.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: padded[lengthSize...]).copyMemory(from: bytes)
            }
        }
        return padded
    }

    private static func unpad(_ padded: UnsafeRawBufferPointer) throws(KeychainError) -> ItemSecret {
        let count = Int(UInt32(bigEndian: padded.loadUnaligned(as: UInt32.self)))
        let end = lengthSize + count
        guard count <= ItemSecret.maximumCount, end <= padded.count, padded.count - end < paddingStep,
            padded[end...].allSatisfy({ $0 == 0 })
        else { throw undecodable }
        return try ItemSecret(copying: UnsafeRawBufferPointer(rebasing: padded[lengthSize..<end]))
    }

    // MARK: What the halves are bound to

    private static var undecodable: KeychainError {
        KeychainError(.undecodable, "a stored item is not what was sealed")
    }

    private static func halves(of row: ItemRow) throws(KeychainError) -> (metadata: [UInt8], secret: [UInt8]?) {
        guard case .sealed(let metadata, let secret) = row.content else { throw undecodable }
        return (metadata, secret)
    }

    private static func pair(of half: [UInt8]) throws(KeychainError) -> [UInt8] {
        guard half.count >= prefixSize, half[0] == version else { throw undecodable }
        return Array(half[1..<prefixSize])
    }

    /// Everything in the row's header, and whether there is a secret: all that the attributes' seal vouches for.
    private static func metadataBinding(_ header: ItemHeader, pair: [UInt8], hasSecret: Bool) -> [UInt8] {
        var bytes: [UInt8] = [version, 1]
        bytes += header.itemClass.rawValue.utf8
        bytes += header.identifier
        bytes += [
            header.isSynchronizable ? 1 : 0, header.isTombstone ? 1 : 0, header.accessibility.number,
            header.generation, hasSecret ? 1 : 0,
        ]
        bytes += pair
        bytes += header.accessGroup.utf8
        return bytes
    }

    /// The same with the other half as a whole: a secret opens beside the attributes that it was sealed with, and beside no
    /// others.
    private static func secretBinding(_ header: ItemHeader, pair: [UInt8], metadata: [UInt8]) -> [UInt8] {
        var bytes = metadataBinding(header, pair: pair, hasSecret: true)
        bytes[1] = 2
        withUnsafeBytes(of: UInt32(header.accessGroup.utf8.count).bigEndian) { bytes += $0 }
        return bytes + metadata
    }

    // MARK: Digests

    package func digest(
        of value: ItemValue, _ attribute: String, _ itemClass: ItemClass
    ) throws(KeychainError) -> LookupDigest {
        try keys.withDigestKey { (key) throws(KeychainError) in
            try SealedDigests.digest(of: value, attribute, itemClass, key)
        }
    }

    package func primaryKeyDigest(
        of values: [ItemValue], _ itemClass: ItemClass, accessGroup: String, isSynchronizable: Bool
    ) throws(KeychainError) -> LookupDigest {
        try keys.withDigestKey { (key) throws(KeychainError) in
            try SealedDigests.primaryKey(values, itemClass, accessGroup, isSynchronizable, key)
        }
    }

    /// What tells one digest key from another, without telling anything of either.
    func digestKeyCheck() throws(KeychainError) -> [UInt8] {
        try keys.withDigestKey { (key) throws(KeychainError) in try SealedDigests.keyCheck(key) }
    }

    /// All digests of an item.
    func digests(
        of attributes: ItemDictionary, _ header: ItemHeader
    ) throws(KeychainError) -> (primaryKey: LookupDigest, digests: [String: LookupDigest]) {
        try keys.withDigestKey { (key) throws(KeychainError) in try SealedDigests.all(attributes, header, key) }
    }

    package func mended(_ row: ItemRow) throws(KeychainError) -> ItemRow? {
        // Whose digests a tombstone has nobody knows but they.
        guard !row.header.isTombstone else { return nil }
        do throws(KeychainError) {
            let attributes = try openAttributes(of: row)
            _ = try openSecret(of: row)
            var mended = row
            (mended.primaryKey, mended.digests) = try digests(of: attributes, row.header)
            return mended.primaryKey == row.primaryKey && mended.digests == row.digests ? nil : mended
        } catch {
            guard error.code == .undecodable else { throw error }
            return nil
        }
    }

    /// A row whose digests are not those of its attributes was changed in its digest columns.
    /// A tombstone keeps the digests of an item whose names it does not say.
    private func check(_ row: ItemRow, _ attributes: ItemDictionary) throws(KeychainError) {
        if row.header.isTombstone { return }
        let expected = try digests(of: attributes, row.header)
        guard expected.primaryKey == row.primaryKey, expected.digests == row.digests else { throw Self.undecodable }
    }
}
