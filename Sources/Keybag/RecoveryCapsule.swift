import Cryptography
import ProtectionModel
import SecretMemory

/// All migratable class keys of a keybag, sealed to its recovery public key. `docs/formats/recovery-capsule.md`.
///
/// It needs no device key. Its digest finds damage without any key; its authenticator, which only the keybag and the
/// holder of the recovery key can make, finds a capsule that somebody else sealed to the same public key.
struct RecoveryCapsule: Hashable, Sendable {
    static let magic = Array("candado-capsule\n".utf8)
    static let version: UInt32 = 1
    /// Bytes before the list of keys.
    static let headerSize = 104
    private static let trailerSize = 64
    /// Longer files are no capsules: 7 classes with 256 generations each fit.
    static let maximumSize = 1 << 17

    let identifier: KeybagIdentifier
    /// The change number of the keybag that these keys belong to.
    let change: UInt64
    /// The key that the box is sealed to.
    let publicKey: [UInt8]
    /// The next generation of every class.
    let next: [KeyClass: Int]
    /// Which keys are in the box, in its order, rising.
    let names: [KeyName]
    /// The sealed keys, 32 bytes each.
    private let box: [UInt8]
    private let authenticator: [UInt8]

    /// The names that a capsule of this keybag has to hold.
    static func names(in document: KeybagDocument) -> [KeyName] {
        KeyClass.allCases.filter(\.isMigratable).flatMap { keyClass in
            (document.classes[keyClass]?.generations ?? []).map {
                KeyName(keyClass: keyClass, generation: $0.generation)
            }
        }
    }

    /// True when it holds what a capsule of this keybag has to hold, sealed to the keybag's recovery key.
    func isCurrent(for document: KeybagDocument) -> Bool {
        identifier == document.identifier && publicKey == document.recovery?.publicKey
            && names == Self.names(in: document)
    }

    /// Seals the keys of a keybag. `keys` holds a key for every name.
    static func seal(
        _ document: KeybagDocument, publicKey: [UInt8], keys: [KeyName: ClassKey],
        authenticationKey: borrowing SecretBytes
    ) throws(ProtectionError) -> [UInt8] {
        let names = names(in: document)
        var bytes = magic + LittleEndian.bytes(version) + LittleEndian.bytes(UInt32(0))
        bytes += document.identifier.bytes + LittleEndian.bytes(document.change) + publicKey
        for keyClass in KeyClass.allCases { bytes += LittleEndian.bytes(UInt16(document.classes[keyClass]?.next ?? 0)) }
        bytes += LittleEndian.bytes(UInt16(names.count))
        for name in names { bytes += [name.keyClass.rawValue, name.generation] }

        var payload = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: 32 * names.count) }
        for (index, name) in names.enumerated() {
            guard let key = keys[name], key.bytes.count == 32 else {
                throw ProtectionError(.damaged(.keybag), "a class key for the recovery capsule is missing")
            }
            payload.withUnsafeMutableBytes { payload in
                key.bytes.withUnsafeBytes { key in
                    UnsafeMutableRawBufferPointer(rebasing: payload[(32 * index)..<(32 * index + 32)]).copyMemory(
                        from: key)
                }
            }
        }
        let context = bytes
        bytes += try payload.withUnsafeBytes { (payload) throws(ProtectionError) -> [UInt8] in
            try translatingErrors { () throws(CryptographyError) in
                try SealedBox.seal(payload, to: publicKey, context: context)
            }
        }
        do {
            bytes += try Authenticator.authenticate(bytes, key: authenticationKey)
            return bytes + (try Digest.sha256(bytes))
        } catch {
            throw ProtectionError(error)
        }
    }

    /// Decodes stored bytes. Throws `damaged(capsule)`, or `needsNewerVersion` when they are whole but from the future.
    init(decoding bytes: [UInt8]) throws(ProtectionError) {
        let damaged = ProtectionError(.damaged(.capsule), "the recovery capsule is not what was written")
        guard bytes.count > Self.headerSize + Self.trailerSize, bytes.count <= Self.maximumSize,
            bytes.starts(with: Self.magic)
        else { throw damaged }
        let content = Array(bytes.dropLast(32))
        let digest = try translatingErrors { () throws(CryptographyError) in try Digest.sha256(content) }
        guard digest.elementsEqual(bytes.suffix(32)) else { throw damaged }
        guard LittleEndian.value(bytes[16..<20]) as UInt32 == Self.version,
            LittleEndian.value(bytes[20..<24]) as UInt32 == 0
        else {
            throw ProtectionError(.needsNewerVersion, "the recovery capsule needs a newer version of candado")
        }
        guard let identifier = KeybagIdentifier(bytes: bytes[24..<40]) else { throw damaged }
        self.identifier = identifier
        change = LittleEndian.value(bytes[40..<48])
        publicKey = Array(bytes[48..<80])
        var next: [KeyClass: Int] = [:]
        for (index, keyClass) in KeyClass.allCases.enumerated() {
            let number = Int(LittleEndian.value(bytes[(80 + 2 * index)..<(82 + 2 * index)]) as UInt16)
            guard number <= 256 else { throw damaged }
            next[keyClass] = number
        }
        self.next = next
        let count = Int(LittleEndian.value(bytes[102..<104]) as UInt16)
        let boxStart = Self.headerSize + 2 * count
        guard count > 0, bytes.count == boxStart + SealedBox.overhead + 32 * count + Self.trailerSize else {
            throw damaged
        }
        var names: [KeyName] = []
        for index in 0..<count {
            let place = Self.headerSize + 2 * index
            guard let keyClass = KeyClass(rawValue: bytes[place]), keyClass.isMigratable,
                Int(bytes[place + 1]) < next[keyClass] ?? 0
            else { throw damaged }
            let name = KeyName(keyClass: keyClass, generation: bytes[place + 1])
            if let last = names.last, (last.keyClass, last.generation) >= (name.keyClass, name.generation) {
                throw damaged
            }
            names.append(name)
        }
        self.names = names
        box = Array(bytes[boxStart..<(bytes.count - Self.trailerSize)])
        authenticator = Array(bytes[(bytes.count - 64)..<(bytes.count - 32)])
        encoded = bytes
    }

    /// The stored form.
    let encoded: [UInt8]

    /// Opens it. Throws `wrongPasscode` for another recovery key, `damaged(capsule)` when somebody else made it.
    func open(with recoveryKey: borrowing RecoveryKey) throws(ProtectionError) -> [KeyName: ClassKey] {
        let pair = try openPair(recoveryKey)
        let signed = Array(encoded.dropLast(64))
        let isAuthentic: Bool
        do {
            isAuthentic = try Authenticator.verify(authenticator, of: signed, key: try recoveryKey.authenticationKey())
        } catch { throw ProtectionError(error) }
        guard isAuthentic else {
            throw ProtectionError(.damaged(.capsule), "the recovery capsule was not made by its keybag")
        }
        let context = Array(encoded[..<(Self.headerSize + 2 * names.count)])
        let payload: SecretBytes
        do { payload = try SealedBox.open(box, privateKey: pair.privateKey, context: context) } catch {
            throw ProtectionError(.damaged(.capsule), "the recovery capsule does not open", cause: error)
        }
        var keys: [KeyName: ClassKey] = [:]
        for (index, name) in names.enumerated() {
            keys[name] = try payload.withUnsafeBytes { (payload) throws(ProtectionError) in
                let part = UnsafeRawBufferPointer(rebasing: payload[(32 * index)..<(32 * index + 32)])
                return ClassKey(
                    try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(copying: part) })
            }
        }
        return keys
    }

    private func openPair(_ recoveryKey: borrowing RecoveryKey) throws(ProtectionError) -> KeyAgreement.KeyPair {
        let pair: KeyAgreement.KeyPair
        do { pair = try recoveryKey.keyPair() } catch { throw ProtectionError(error) }
        guard pair.publicKey == publicKey else {
            throw ProtectionError(.wrongPasscode, "the recovery capsule belongs to another recovery key")
        }
        return pair
    }
}
