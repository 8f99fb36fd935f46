import ProtectionModel

/// What a well-formed key record says, read in place: a walk over many files must not allocate for each.
///
/// It takes exactly what `KeyRecord` takes, which a test checks. Whatever it does not take, `KeyRecord` explains.
struct RecordClaim {
    let protectionClass: ProtectionClass
    let flags: KeyRecord.Flags
    let isDirectory: Bool
    let keybag: KeybagClaim

    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= KeyRecord.prefixSize, bytes[0] == KeyRecord.version,
            let protectionClass = ProtectionClass(letter: bytes[1])
        else { return nil }
        let flags = KeyRecord.Flags(rawValue: bytes[2])
        guard flags.isSubset(of: .known) else { return nil }
        if bytes.count == KeyRecord.prefixSize {
            guard flags.isEmpty, bytes[3] == 0 else { return nil }
            isDirectory = true
        } else {
            let size = protectionClass == .completeUnlessOpen ? KeyRecord.asymmetricSize : KeyRecord.symmetricSize
            guard bytes.count == size else { return nil }
            isDirectory = false
        }
        self.protectionClass = protectionClass
        self.flags = flags
        keybag = KeybagClaim(bytes, at: 4)
    }
}

/// A keybag identifier in two words, to be compared without allocating.
struct KeybagClaim: Hashable {
    let first: UInt64
    let second: UInt64

    /// There must be 16 bytes from `offset` on.
    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        first = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        second = bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
    }

    init(_ identifier: KeybagIdentifier) {
        self = identifier.bytes.withUnsafeBytes { KeybagClaim($0, at: 0) }
    }

    /// The identifier.
    var identifier: KeybagIdentifier? {
        withUnsafeBytes(of: (first, second)) { KeybagIdentifier(bytes: $0) }
    }
}
