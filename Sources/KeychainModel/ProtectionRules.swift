/// The rules between accessibility, access control and synchronizability (apple-semantics 3.3, 3.4 and 3.6).
package enum ProtectionRules {
    /// Notes what does not go together in one dictionary.
    static func check(
        accessibility: Accessibility?, accessControl: AccessControl?, isSynchronizable: Bool,
        _ faults: inout RequestFaults
    ) {
        if let accessibility, let accessControl, accessControl.accessibility != accessibility {
            faults.malformed(
                "accc", "'accc' and 'pdmn' name different accessibilities: leave 'pdmn' out, for 'accc' has one")
        }
        guard isSynchronizable else { return }
        if accessControl?.hasConstraints == true {
            faults.malformed("accc", "'accc' with constraints and 'sync' exclude each other")
        }
        if (accessControl?.accessibility ?? accessibility)?.isThisDeviceOnly == true {
            faults.malformed("pdmn", synchronizableMessage)
        }
    }

    /// Throws `malformed` when an item may not be both.
    package static func requirePossible(
        _ accessibility: Accessibility, isSynchronizable: Bool
    ) throws(KeychainError) {
        guard isSynchronizable, accessibility.isThisDeviceOnly else { return }
        throw KeychainError(.malformed, synchronizableMessage)
    }

    private static let synchronizableMessage =
        "a synchronizable item cannot have a ThisDeviceOnly accessibility: choose another 'pdmn', or leave 'sync' out"
}
