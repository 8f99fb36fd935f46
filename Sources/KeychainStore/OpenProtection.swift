import KeychainModel
import ProtectionModel
import SecretMemory

/// Seals nothing: for items in memory. It knows the lock state, and answers as sealed items would. Thread-safe.
package final class OpenProtection: ItemProtection {
    private let lock: SimulatedLock
    /// Digests are Swift's hashes of one process, keyed once more, twice as long.
    private let keys: (UInt64, UInt64)

    package init(_ lock: SimulatedLock) {
        self.lock = lock
        keys = (.random(in: .min ... .max), .random(in: .min ... .max))
    }

    package func digest(
        of value: ItemValue, _ attribute: String, _ itemClass: ItemClass
    ) throws(KeychainError) -> LookupDigest {
        digest { hasher in
            hasher.combine(ItemClassSet(itemClass))
            Self.feed(attribute, &hasher)
            Self.feed(value, &hasher)
        }
    }

    package func primaryKeyDigest(
        of values: [ItemValue], _ itemClass: ItemClass, accessGroup: String, isSynchronizable: Bool
    ) throws(KeychainError) -> LookupDigest {
        digest { hasher in
            hasher.combine(ItemClassSet(itemClass))
            hasher.combine(isSynchronizable)
            Self.feed(accessGroup, &hasher)
            for value in values { Self.feed(value, &hasher) }
        }
    }

    package func requireSealing(_ accessibility: Accessibility) throws(KeychainError) {
        let facts = lock.current
        guard facts.hasPasscode || accessibility != .whenPasscodeSetThisDeviceOnly else {
            throw KeychainError(
                .notAvailable,
                "an item of accessibility akpu needs a passcode, and none is set: set one, or choose another")
        }
        try Self.requireReadable(accessibility, facts)
    }

    package func seal(
        _ attributes: ItemDictionary, _ secret: ItemSecret?, _ header: inout ItemHeader
    ) throws(KeychainError) -> ItemContent {
        let facts = lock.current
        guard facts.hasPasscode || header.accessibility != .whenPasscodeSetThisDeviceOnly else {
            throw KeychainError(.notAvailable, "an item of accessibility akpu needs a passcode, and none is set")
        }
        try Self.requireReadable(header.accessibility, facts)
        header.generation = Self.generation(header.accessibility, facts)
        return .open(attributes: attributes, secret: secret)
    }

    package func attributes(of row: ItemRow) throws(KeychainError) -> ItemDictionary { try open(row).attributes }

    package func secret(of row: ItemRow) throws(KeychainError) -> ItemSecret? { try open(row).secret }

    // MARK: Inside

    private func open(_ row: ItemRow) throws(KeychainError) -> (attributes: ItemDictionary, secret: ItemSecret?) {
        let facts = lock.current
        let accessibility = row.header.accessibility
        guard row.header.generation == Self.generation(accessibility, facts) else {
            throw KeychainError(.undecodable, "the passcode that the item needed was removed")
        }
        try Self.requireReadable(accessibility, facts)
        guard case .open(let attributes, let secret) = row.content else {
            throw KeychainError(.undecodable, "the item is sealed, and there are no keys in memory")
        }
        return (attributes, secret)
    }

    private static func generation(_ accessibility: Accessibility, _ facts: SimulatedLock.Facts) -> UInt8 {
        accessibility == .whenPasscodeSetThisDeviceOnly ? facts.passcodeGeneration : 0
    }

    private static func requireReadable(
        _ accessibility: Accessibility, _ facts: SimulatedLock.Facts
    ) throws(KeychainError) {
        let isReadable =
            switch (accessibility, facts.state) {
            case (_, .unlocked): true
            case (.always, _), (.alwaysThisDeviceOnly, _): true
            case (.afterFirstUnlock, .locked), (.afterFirstUnlockThisDeviceOnly, .locked): true
            default: false
            }
        guard isReadable else {
            throw KeychainError(
                .locked,
                "items of accessibility \(accessibility.rawValue) cannot be used in the present lock state: unlock first"
            )
        }
    }

    private func digest(_ feed: (inout Hasher) -> Void) -> LookupDigest {
        var high = Hasher()
        high.combine(keys.0)
        feed(&high)
        // All that was fed is in the state of both.
        var low = high
        low.combine(keys.1)
        return LookupDigest(
            high: UInt64(bitPattern: Int64(high.finalize())), low: UInt64(bitPattern: Int64(low.finalize())))
    }

    private static func feed(_ value: ItemValue, _ hasher: inout Hasher) {
        switch value {
        case .text(let text):
            hasher.combine(1 as UInt8)
            feed(text, &hasher)
        case .data(let bytes):
            hasher.combine(2 as UInt8)
            bytes.withUnsafeBytes { feed($0, &hasher) }
        case .number(let number):
            hasher.combine(3 as UInt8)
            hasher.combine(number)
        case .date(let seconds):
            hasher.combine(4 as UInt8)
            hasher.combine(seconds)
        // Nothing else is a value that items have digests of.
        default: hasher.combine(0 as UInt8)
        }
    }

    /// The bytes themselves: texts that only look equal have other digests.
    private static func feed(_ text: String, _ hasher: inout Hasher) {
        let isFed: Void? = text.utf8.withContiguousStorageIfAvailable { feed(UnsafeRawBufferPointer($0), &hasher) }
        if isFed == nil { Array(text.utf8).withUnsafeBytes { feed($0, &hasher) } }
    }

    private static func feed(_ bytes: UnsafeRawBufferPointer, _ hasher: inout Hasher) {
        hasher.combine(bytes.count)
        hasher.combine(bytes: bytes)
    }
}
