extension Caller {
    /// The group of items on tokens, which nobody may write (apple-semantics 3.5).
    package static let tokenGroup = "com.apple.token"

    /// The groups whose items it may see; nil for all.
    package var visibleGroups: [String]? { holdsAllGroups || isAdministrator ? nil : accessGroups }

    /// True when there is nothing that it may do.
    package var holdsNothing: Bool { visibleGroups?.isEmpty == true }

    /// True when it may see the items of a group.
    package func maySee(_ group: String) -> Bool {
        visibleGroups.map { groups in groups.contains { $0.hasSameBytes(as: group) } } ?? true
    }

    /// True when it may put items into a group.
    package func mayWrite(_ group: String) -> Bool { Self.isWritable(group) && maySee(group) }

    /// True for a name that items can have as their group.
    package static func isWritable(_ group: String) -> Bool {
        !group.isEmpty && group != "*" && group != tokenGroup
    }
}
