import LinuxSystem
import ProtectionModel

/// The settings of a home: `docs/formats/settings.md`. One line a setting, `name value`; the first line is the format's.
public struct Settings: Hashable, Sendable {
    /// The class of a new file when neither the caller nor the directory names one.
    public var defaultClass = ProtectionClass.completeUntilFirstUserAuthentication
    /// Seconds between an automatic lock and the end of the keys, 0 to 3,600.
    public var gracePeriod: UInt32 = 10
    /// Whether ten completed wrong passcodes in a row destroy the class keys.
    public var erasesAfterTenTries = false

    /// The defaults.
    public init() {}

    /// The names of the settings, in the order in which they are stored and shown.
    public enum Name: String, CaseIterable, Sendable {
        case defaultClass = "default-class"
        case gracePeriod = "grace-period"
        case erase = "erase-after-ten-tries"

        /// What the setting is for, in one line.
        public var summary: String {
            switch self {
            case .defaultClass: "class of new files: complete, complete-unless-open, until-first-unlock or none"
            case .gracePeriod: "seconds between an automatic lock and the end of the keys, 0 to 3600"
            case .erase: "destroy the class keys after ten wrong passcodes in a row: true or false"
            }
        }
    }

    static let firstLine = "candado-settings 1"
    static let fileName: FilePath = "settings"
    static let maximumSize = 4096

    /// The value of a setting as text.
    public func value(of name: Name) -> String {
        switch name {
        case .defaultClass: defaultClass.name
        case .gracePeriod: String(gracePeriod)
        case .erase: erasesAfterTenTries ? "true" : "false"
        }
    }

    /// Sets a setting from its text. Throws `invalidArgument`, which says what would be valid.
    public mutating func set(_ name: Name, to text: String) throws(ProtectionError) {
        let invalid = ProtectionError(.invalidArgument, "\(name.rawValue) takes: \(name.summary)")
        switch name {
        case .defaultClass:
            guard let value = ProtectionClass(name: text) else { throw invalid }
            defaultClass = value
        case .gracePeriod:
            guard let value = UInt32(text), value <= 3600, String(value) == text else { throw invalid }
            gracePeriod = value
        case .erase:
            guard text == "true" || text == "false" else { throw invalid }
            erasesAfterTenTries = text == "true"
        }
    }

    /// The stored form. What decodes encodes back to the same bytes.
    public var encoded: [UInt8] {
        let lines = [Self.firstLine] + Name.allCases.map { "\($0.rawValue) \(value(of: $0))" }
        return Array((lines.joined(separator: "\n") + "\n").utf8)
    }

    /// Decodes the stored form strictly.
    ///
    /// Throws `needsNewerVersion` for another version or a setting that this one does not know, else `invalidArgument`.
    public init(decoding bytes: [UInt8]) throws(ProtectionError) {
        let damaged = ProtectionError(.invalidArgument, "the settings file does not decode; write it with 'config set'")
        guard let text = String(validating: bytes, as: UTF8.self) else { throw damaged }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 2, lines.last == "" else { throw damaged }
        guard lines[0] == Self.firstLine else {
            if Self.isNewerVersion(lines[0]) {
                throw ProtectionError(.needsNewerVersion, "the settings need a newer version of candado")
            }
            throw damaged
        }
        for line in lines.dropFirst().dropLast() {
            let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw damaged }
            guard let name = Name(rawValue: String(parts[0])) else {
                throw ProtectionError(
                    .needsNewerVersion, "the settings name something that needs a newer version of candado")
            }
            try set(name, to: String(parts[1]))
        }
        guard encoded == bytes else { throw damaged }
    }

    private static func isNewerVersion(_ line: Substring) -> Bool {
        let prefix = "candado-settings "
        let number = line.dropFirst(prefix.count)
        guard line.hasPrefix(prefix), let version = UInt32(number) else { return false }
        return version > 1 && String(version) == number
    }

    /// Reads the settings of a home; a home without any has the defaults.
    public static func read(
        from home: KeybagHome, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> Settings {
        let path = home.directory.appending(fileName)
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try SafeFile.read(path, in: currentDirectory, maximumSize: maximumSize, ownerOnly: true, system)
        } catch {
            if error.errorNumber == ErrorNumber.noEntry { return Settings() }
            throw ProtectionError(.system(error.errorNumber), "the settings cannot be read", path: path, cause: error)
        }
        do throws(ProtectionError) { return try Settings(decoding: bytes) } catch { throw error.at(path) }
    }

    /// Writes the settings of a home atomically. Throws `invalidArgument` for values that would not be read again.
    public func write(
        to home: KeybagHome, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) {
        let path = home.directory.appending(Self.fileName)
        let bytes = encoded
        _ = try Settings(decoding: bytes)
        let outcome = bytes.withUnsafeBytes { buffer in
            Result { () throws(SystemError) in try AtomicFile.replace(path, with: buffer, system) }
        }
        if case .failure(let error) = outcome {
            throw ProtectionError(
                .system(error.errorNumber), "the settings cannot be written", path: path, cause: error)
        }
    }
}

extension Keybag.Settings {
    /// What the settings of a home say.
    public init(_ settings: Settings) {
        self.init()
        defaultClass = settings.defaultClass
        gracePeriod = Double(settings.gracePeriod)
        erasesAfterTooManyTries = settings.erasesAfterTenTries
    }
}
