/// A service of class keys in front of another one: what it does not do itself, the other does.
package protocol ForwardingClassKeys: ClassKeyService {
    /// The one behind.
    var base: any ClassKeyService { get }
}

extension ForwardingClassKeys {
    package var keybagIdentifier: KeybagIdentifier { base.keybagIdentifier }
    package var defaultClass: ProtectionClass { base.defaultClass }
    package var lockState: LockState { base.lockState }
    package var prefersBatches: Bool { base.prefersBatches }
    package func canUnwrap(_ protectionClass: ProtectionClass) -> Bool { base.canUnwrap(protectionClass) }
    package func canWrap(_ protectionClass: ProtectionClass) -> Bool { base.canWrap(protectionClass) }
    package func lockEvents() -> AsyncStream<LockEvent> { base.lockEvents() }

    package func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        try base.rewrap(record, to: protectionClass, flags: flags)
    }
}
