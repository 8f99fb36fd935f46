import KeychainModel
import LinuxSystem

/// Which programs have which application identifier and access groups: `docs/formats/entitlements.md`. A value.
public struct Entitlements: Hashable, Sendable {
    /// What one executable is entitled to.
    public struct Entry: Hashable, Sendable {
        /// The absolute path of the executable.
        public var executable: String
        /// `application-identifier`.
        public var applicationIdentifier: String
        /// `keychain-access-groups`, the default group first. May be empty: then the identifier is the only group.
        public var accessGroups: [String]

        public init(executable: String, applicationIdentifier: String, accessGroups: [String] = []) {
            self.executable = executable
            self.applicationIdentifier = applicationIdentifier
            self.accessGroups = accessGroups
        }

        /// The groups in the order of Apple's: those that are named, then the identifier, each once.
        public var allGroups: [String] {
            var all: [String] = []
            for group in accessGroups + [applicationIdentifier]
            where !all.contains(where: { $0.hasSameBytes(as: group) }) {
                all.append(group)
            }
            return all
        }
    }

    /// The name of the file in a home.
    public static let fileName: FilePath = "entitlements.json"
    /// The file of the machine's administrator.
    public static let systemFile: FilePath = "/etc/candado/entitlements.json"
    /// The most bytes of a file.
    public static let maximumSize = 1 << 20
    /// The most bytes of an identifier or a group.
    public static let longestName = 256
    /// The most groups of an entry.
    public static let maximumGroups = 64

    /// All entries, by the bytes of their paths.
    public private(set) var entries: [Entry] = []

    /// None.
    public init() {}

    /// The entry of an executable.
    public subscript(executable: String) -> Entry? {
        var range = 0..<entries.count
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            if entries[middle].executable.hasSameBytes(as: executable) { return entries[middle] }
            if Self.precedes(entries[middle].executable, executable) {
                range = middle + 1..<range.upperBound
            } else {
                range = range.lowerBound..<middle
            }
        }
        return nil
    }

    private static func precedes(_ one: String, _ two: String) -> Bool { one.utf8.lexicographicallyPrecedes(two.utf8) }

    /// Adds an entry, or replaces that of the same path, and those whose paths `isSame` says are other spellings of it. Throws
    /// `malformed`, and says what would be right.
    public mutating func set(
        _ entry: Entry, replacing isSame: (String) -> Bool = { _ in false }
    ) throws(KeychainError) {
        try Self.check(entry)
        entries.removeAll { $0.executable.hasSameBytes(as: entry.executable) || isSame($0.executable) }
        let place = entries.firstIndex { Self.precedes(entry.executable, $0.executable) } ?? entries.count
        entries.insert(entry, at: place)
    }

    /// Removes an entry, and those whose paths `isSame` says are other spellings of its path. Throws `itemNotFound` when there
    /// is none.
    public mutating func remove(
        executable: String, andAll isSame: (String) -> Bool = { _ in false }
    ) throws(KeychainError) {
        let count = entries.count
        entries.removeAll { $0.executable.hasSameBytes(as: executable) || isSame($0.executable) }
        guard entries.count < count else {
            throw KeychainError(.itemNotFound, "no entitlements are set for that executable")
        }
    }

    private static func check(_ entry: Entry) throws(KeychainError) {
        func refuse(_ sentence: String) -> KeychainError { KeychainError(.malformed, sentence) }
        guard entry.executable.utf8.first == UInt8(ascii: "/"), !entry.executable.utf8.contains(0),
            entry.executable.utf8.count < 4096
        else { throw refuse("an executable is named by its absolute path") }
        guard entry.accessGroups.count <= maximumGroups else {
            throw refuse("a program has at most \(maximumGroups) access groups")
        }
        for name in [entry.applicationIdentifier] + entry.accessGroups {
            guard !name.isEmpty, name.utf8.count <= longestName, name.unicodeScalars.allSatisfy(isVisible) else {
                throw refuse(
                    "identifiers and access groups have 1 to \(longestName) bytes, without spaces and characters that cannot be seen"
                )
            }
            // A group of a program that is known by its path alone, of a script or of a container is nobody's to give.
            guard !isReserved(name) else {
                throw refuse(
                    "identifiers and access groups do not begin with '/', \"'\", 'script:' or 'container:', and 'candado' is the command line's own"
                )
            }
        }
        guard !entry.applicationIdentifier.utf8.contains(asterisk),
            entry.accessGroups.allSatisfy({ !$0.utf8.contains(asterisk) || $0.utf8.count == 1 })
        else {
            throw refuse("'*' stands for all access groups, alone, and is part of no identifier and no other group")
        }
        guard Set(entry.accessGroups.map { Array($0.utf8) }).count == entry.accessGroups.count else {
            throw refuse("an access group is named twice")
        }
    }

    private static let asterisk = UInt8(ascii: "*")

    /// Names that look alike and are not would be given to the wrong program.
    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        if ("!"..."~").contains(scalar) { return true }
        let properties = scalar.properties
        return !properties.isWhitespace && !properties.isDefaultIgnorableCodePoint
            && properties.generalCategory != .control
    }

    /// The access group of the project's command line.
    package static let administratorGroup = "candado"

    /// True for names that only programs without entitlements have, or the command line.
    package static func isReserved(_ name: String) -> Bool {
        name == administratorGroup
            || ["/", "'", "script:", "container:"].contains { name.utf8.starts(with: $0.utf8) }
    }

    // MARK: The stored form

    private static let version: UInt32 = 1

    /// The stored form: what decodes and is encoded again may differ in white space and order alone.
    public var encoded: [UInt8] {
        func list(_ texts: [String]) -> String { "[" + texts.map(EntitlementText.quoted).joined(separator: ", ") + "]" }
        let programs = entries.map { entry in
            "    \(EntitlementText.quoted(entry.executable)): {\n"
                + "      \"application-identifier\": \(EntitlementText.quoted(entry.applicationIdentifier)),\n"
                + "      \"keychain-access-groups\": \(list(entry.accessGroups))\n    }"
        }
        let object = programs.isEmpty ? "{}" : "{\n" + programs.joined(separator: ",\n") + "\n  }"
        return Array("{\n  \"version\": \(Self.version),\n  \"programs\": \(object)\n}\n".utf8)
    }

    /// Decodes the stored form strictly. Throws `needsNewerVersion`, else `malformed`.
    public init(decoding bytes: [UInt8]) throws(KeychainError) {
        let damaged = KeychainError(.malformed, "the entitlements do not decode")
        guard bytes.count <= Self.maximumSize, case .object(let top) = EntitlementText(bytes) else { throw damaged }
        guard case .number(let version) = top["version"], version > 0 else { throw damaged }
        guard version == Self.version else {
            throw KeychainError(.needsNewerVersion, "the entitlements are of a newer version")
        }
        guard top.count == 2, case .object(let programs) = top["programs"] else { throw damaged }
        entries.reserveCapacity(programs.count)
        for (name, value) in programs {
            guard case .object(let members) = value, members.count == 2,
                case .text(let identifier) = members["application-identifier"],
                case .list(let list) = members["keychain-access-groups"]
            else { throw damaged }
            var groups: [String] = []
            for element in list {
                guard case .text(let group) = element else { throw damaged }
                groups.append(group)
            }
            let entry = Entry(executable: name.text, applicationIdentifier: identifier, accessGroups: groups)
            try Self.check(entry)
            entries.append(entry)
        }
        entries.sort { Self.precedes($0.executable, $1.executable) }
    }
}
