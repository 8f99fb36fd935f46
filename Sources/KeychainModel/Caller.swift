/// Who asks, and whose items it may see.
public struct Caller: Hashable, Sendable {
    /// How the caller became known.
    public enum Source: String, CaseIterable, Hashable, Sendable {
        /// A program said so of itself: its items are its own (embedded and in memory).
        case configured
        /// The entitlements file names its executable.
        case entitlements
        /// An Info.plist beside its executable.
        case informationPropertyList = "info-plist"
        /// The path of its executable.
        case executable
        /// The script that an interpreter runs.
        case script
        /// The command line of this project: manages everybody's items.
        case administrator
    }

    /// The application identifier; nil when there is none.
    public var applicationIdentifier: String?
    /// The access groups that it holds: `keychain-access-groups`, then the application identifier, each once. New items go
    /// into the first. None: nothing is allowed.
    public var accessGroups: [String]
    /// True when it holds all groups ("*").
    public var holdsAllGroups: Bool
    public var source: Source

    public init(
        applicationIdentifier: String?, accessGroups: [String], holdsAllGroups: Bool = false, source: Source
    ) {
        self.applicationIdentifier = applicationIdentifier
        self.accessGroups = accessGroups
        self.holdsAllGroups = holdsAllGroups
        self.source = source
    }

    /// True when it may purge, adopt, and see all groups.
    public var isAdministrator: Bool { source == .administrator }
}
