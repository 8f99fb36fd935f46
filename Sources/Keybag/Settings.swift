import LinuxSystem
import ProtectionModel

/// The settings of a home: `docs/formats/settings.md`. One line a setting, `name value`; the first line is the format's.
///
/// The file is of the lowest version that can say what is set, so that an older program reads it as long as possible.
public struct Settings: Hashable, Sendable {
    /// The class of a new file when neither the caller nor the directory names one.
    public var defaultClass = ProtectionClass.completeUntilFirstUserAuthentication
    /// Seconds between an automatic lock and the end of the keys, 0 to 3,600.
    public var gracePeriod: UInt32 = 10
    /// Whether ten completed wrong passcodes in a row destroy the class keys.
    public var erasesAfterTenTries = false
    /// Seconds without use after which the agent locks, 10 to 86,400; 0 for never.
    public var idleTime: UInt32 = 0
    /// Whether the agent locks when the screen is locked.
    public var locksOnScreenLock = true
    /// Whether the agent locks before the machine sleeps.
    public var locksOnSleep = true
    /// Whether the agent locks when the session ends.
    public var locksOnSessionEnd = true
    /// Whether the agent keeps keys in secret memory. False for ordinary locked memory: while secret memory is in use,
    /// Linux does not hibernate.
    public var usesSecretMemory = true
    /// Whether the agent logs each read of a keychain item's secret.
    public var logsKeychainReads = false

    /// The defaults.
    public init() {}

    /// The names of the settings, in the order in which they are stored and shown.
    public enum Name: String, CaseIterable, Sendable {
        case defaultClass = "default-class"
        case gracePeriod = "grace-period"
        case erase = "erase-after-ten-tries"
        case idleTime = "idle-time"
        case screenLock = "lock-on-screen-lock"
        case sleep = "lock-on-sleep"
        case sessionEnd = "lock-on-session-end"
        case secretMemory = "secret-memory"
        case keychainReadLog = "keychain-read-log"

        /// The first version of the format that has the setting.
        var version: UInt32 {
            switch self {
            case .defaultClass, .gracePeriod, .erase: 1
            case .idleTime, .screenLock, .sleep, .sessionEnd, .secretMemory: 2
            case .keychainReadLog: 3
            }
        }

        /// What the setting is for, in one line.
        public var summary: String {
            switch self {
            case .defaultClass: "class of new files: complete, complete-unless-open, until-first-unlock or none"
            case .gracePeriod: "seconds between an automatic lock and the end of the keys, 0 to 3600"
            case .erase: "destroy the class keys after ten wrong passcodes in a row: true or false"
            case .idleTime: "seconds without use before the agent locks, 10 to 86400, or 0 for never"
            case .screenLock: "lock when the screen is locked: true or false"
            case .sleep: "lock before the machine sleeps: true or false"
            case .sessionEnd: "lock when the session ends: true or false"
            case .secretMemory:
                "keep the agent's keys in secret memory, which rules out hibernation: true, or false for locked memory"
            case .keychainReadLog: "log each read of a secret in the keychain: true or false"
            }
        }
    }

    private static let prefix = "candado-settings "
    private static let newestVersion: UInt32 = 3
    static let fileName: FilePath = "settings"
    static let maximumSize = 4096

    /// The value of a setting as text.
    public func value(of name: Name) -> String {
        switch name {
        case .defaultClass: defaultClass.name
        case .gracePeriod: String(gracePeriod)
        case .erase: String(erasesAfterTenTries)
        case .idleTime: String(idleTime)
        case .screenLock: String(locksOnScreenLock)
        case .sleep: String(locksOnSleep)
        case .sessionEnd: String(locksOnSessionEnd)
        case .secretMemory: String(usesSecretMemory)
        case .keychainReadLog: String(logsKeychainReads)
        }
    }

    /// Sets a setting from its text. Throws `invalidArgument`, which says what would be valid.
    public mutating func set(_ name: Name, to text: String) throws(ProtectionError) {
        switch name {
        case .defaultClass:
            guard let value = ProtectionClass(name: text) else { throw Self.invalid(name) }
            defaultClass = value
        case .gracePeriod: gracePeriod = try Self.number(text, for: name) { $0 <= 3600 }
        case .erase: erasesAfterTenTries = try Self.truth(text, for: name)
        case .idleTime: idleTime = try Self.number(text, for: name) { $0 == 0 || (10...86_400).contains($0) }
        case .screenLock: locksOnScreenLock = try Self.truth(text, for: name)
        case .sleep: locksOnSleep = try Self.truth(text, for: name)
        case .sessionEnd: locksOnSessionEnd = try Self.truth(text, for: name)
        case .secretMemory: usesSecretMemory = try Self.truth(text, for: name)
        case .keychainReadLog: logsKeychainReads = try Self.truth(text, for: name)
        }
    }

    private static func number(
        _ text: String, for name: Name, where isValid: (UInt32) -> Bool
    ) throws(ProtectionError) -> UInt32 {
        guard let value = UInt32(text), isValid(value), String(value) == text else { throw invalid(name) }
        return value
    }

    private static func truth(_ text: String, for name: Name) throws(ProtectionError) -> Bool {
        guard text == "true" || text == "false" else { throw invalid(name) }
        return text == "true"
    }

    private static func invalid(_ name: Name) -> ProtectionError {
        ProtectionError(.invalidArgument, "\(name.rawValue) takes: \(name.summary)")
    }

    /// The version of the stored form: that of the newest setting that has not its default.
    var version: UInt32 {
        let defaults = Settings()
        return Name.allCases.filter { value(of: $0) != defaults.value(of: $0) }.map(\.version).max() ?? 1
    }

    /// The stored form. What decodes encodes back to the same bytes.
    public var encoded: [UInt8] {
        let version = self.version
        let names = Name.allCases.filter { $0.version <= version }
        let lines = [Self.prefix + String(version)] + names.map { "\($0.rawValue) \(value(of: $0))" }
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
        guard let version = Self.version(of: lines[0]) else { throw damaged }
        guard version <= Self.newestVersion else {
            throw ProtectionError(.needsNewerVersion, "the settings need a newer version of candado")
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

    private static func version(of line: Substring) -> UInt32? {
        let number = line.dropFirst(prefix.count)
        guard line.hasPrefix(prefix), let version = UInt32(number), version > 0, String(version) == number else {
            return nil
        }
        return version
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
        try home.requireOwner(system)
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
