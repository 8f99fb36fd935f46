/// Why something that a conversion met is not for converting. Its raw value is the text for people.
public enum SkipReason: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    case symbolicLink = "a symbolic link"
    case special = "a device, a socket or a pipe"
    case otherFileSystem = "on another file system"
    case ownHome = "Candado's own home"
    case keySource = "what the keybag is opened with"
    case keybagHome = "the home of a keybag"
    case recoveryCapsule = "a recovery capsule, which stays plain"
    case leftover = "what an interrupted change had left, and is removed now"
    case vanished = "gone since it was listed"

    public var description: String { rawValue }
}
