import FileProtection
import TestSupport
import Testing

/// The settings file: strict, and the same bytes again for whatever decodes.
@Suite struct SettingsTests {
    @Test func everyValueComesBack() throws {
        for defaultClass in ProtectionClass.allCases {
            for gracePeriod: UInt32 in [0, 1, 10, 3599, 3600] {
                for erases in [false, true] {
                    var settings = Settings()
                    settings.defaultClass = defaultClass
                    settings.gracePeriod = gracePeriod
                    settings.erasesAfterTenTries = erases
                    #expect(try Settings(decoding: settings.encoded) == settings)
                    for idleTime: UInt32 in [0, 10, 11, 86_399, 86_400] {
                        for flags in 0..<16 {
                            settings.idleTime = idleTime
                            settings.locksOnScreenLock = flags & 1 == 0
                            settings.locksOnSleep = flags & 2 == 0
                            settings.locksOnSessionEnd = flags & 4 == 0
                            settings.usesSecretMemory = flags & 8 == 0
                            #expect(try Settings(decoding: settings.encoded) == settings)
                        }
                    }
                }
            }
        }
        var settings = Settings()
        for name in Settings.Name.allCases {
            try settings.set(name, to: settings.value(of: name))
            #expect(settings == Settings())
        }
    }

    /// The last lines of version 2, at their defaults.
    static let newerDefaults = [
        "idle-time 0", "lock-on-screen-lock true", "lock-on-sleep true", "lock-on-session-end true",
        "secret-memory true",
    ]

    @Test func theFileIsOfVersion3WhenASettingOfVersion3IsChanged() throws {
        let older = "candado-settings 1\ndefault-class none\ngrace-period 7\nerase-after-ten-tries true\n"
        var settings = try Settings(decoding: Array(older.utf8))
        try settings.set(.keychainReadLog, to: "true")
        let newer =
            older.replacing("settings 1", with: "settings 3") + Self.newerDefaults.joined(separator: "\n")
            + "\nkeychain-read-log true\n"
        #expect(settings.encoded == Array(newer.utf8))
        #expect(try Settings(decoding: Array(newer.utf8)) == settings)
        for lower in ["settings 1", "settings 2"] {
            #expect(
                code { try Settings(decoding: Array(newer.replacing("settings 3", with: lower).utf8)) }
                    == .invalidArgument)
        }
        try settings.set(.keychainReadLog, to: "false")
        #expect(settings.encoded == Array(older.utf8))
    }

    @Test func theFileStaysOfVersion1UntilASettingOfVersion2IsChanged() throws {
        let older = "candado-settings 1\ndefault-class none\ngrace-period 7\nerase-after-ten-tries true\n"
        var settings = try Settings(decoding: Array(older.utf8))
        #expect(settings.encoded == Array(older.utf8))
        try settings.set(.gracePeriod, to: "8")
        for name in Settings.Name.allCases { try settings.set(name, to: settings.value(of: name)) }
        let older8 = older.replacing("7", with: "8")
        #expect(settings.encoded == Array(older8.utf8))
        let changes: [(Settings.Name, String)] = [
            (.idleTime, "10"), (.screenLock, "false"), (.sleep, "false"), (.sessionEnd, "false"),
            (.secretMemory, "false"),
        ]
        for (index, (name, value)) in changes.enumerated() {
            var changed = settings
            try changed.set(name, to: value)
            var lines = Self.newerDefaults
            lines[index] = "\(name.rawValue) \(value)"
            let newer = older8.replacing("settings 1", with: "settings 2") + lines.joined(separator: "\n") + "\n"
            #expect(changed.encoded == Array(newer.utf8))
            #expect(try Settings(decoding: Array(newer.utf8)) == changed)
            try changed.set(name, to: Settings().value(of: name))
            #expect(changed.encoded == Array(older8.utf8))
        }
    }

    @Test(arguments: [
        (Settings.Name.idleTime, ["1", "9", "86401", "-1", "+10", "010", "00", "", "10 ", "never", "4294967306"]),
        (.screenLock, ["True", "yes", "1", "", "true "]), (.sleep, ["on", "0", "FALSE"]),
        (.sessionEnd, ["no", "\u{0}"]), (.secretMemory, ["ordinary", "false\n"]), (.keychainReadLog, ["on", "1"]),
    ])
    func aValueThatASettingDoesNotTakeIsRefusedInEitherWay(name: Settings.Name, values: [String]) throws {
        var settings = Settings()
        settings.idleTime = 600
        settings.locksOnSleep = false
        settings.logsKeychainReads = true
        let good = String(decoding: settings.encoded, as: UTF8.self)
        let line = "\(name.rawValue) \(settings.value(of: name))\n"
        #expect(good.contains(line))
        for value in values {
            let before = settings
            #expect(code { try settings.set(name, to: value) } == .invalidArgument, "\(value)")
            #expect(settings == before)
            let bad = good.replacing(line, with: "\(name.rawValue) \(value)\n")
            #expect(code { try Settings(decoding: Array(bad.utf8)) } == .invalidArgument, "\(value)")
        }
    }

    @Test func aFileOfVersion2HasEachSettingOnceInOrderAndOneThatVersion1Lacks() throws {
        var settings = Settings()
        settings.idleTime = 600
        let lines = String(decoding: settings.encoded, as: UTF8.self).split(separator: "\n").map(String.init)
        #expect(lines.count == Settings.Name.allCases.count)
        func decode(_ lines: [String]) -> ProtectionError.Code? {
            code { try Settings(decoding: Array((lines.joined(separator: "\n") + "\n").utf8)) }
        }
        #expect(decode(lines) == nil)
        for index in 1..<lines.count {
            var others = lines
            others.remove(at: index)
            #expect(decode(others) == .invalidArgument, "without \(lines[index])")
            #expect(decode(lines + [lines[index]]) == .invalidArgument, "twice \(lines[index])")
            others = lines
            others.swapAt(index, index == 1 ? 2 : index - 1)
            #expect(decode(others) == .invalidArgument, "\(lines[index]) in another place")
        }
        #expect(decode(["candado-settings 1"] + lines.dropFirst()) == .invalidArgument)
        #expect(decode(["candado-settings 2"] + lines[1...3]) == .invalidArgument)
        #expect(decode(["candado-settings 2"] + lines[1...3] + Self.newerDefaults) == .invalidArgument)
        #expect(decode(lines + ["lock-on-full-moon true"]) == .needsNewerVersion)
    }

    @Test(arguments: [
        "", "\n", "candado-settings 1", "candado-settings 1\n", "candado-settings 1\n\n", "candado-settings  1\n",
        "Candado-settings 1\n", "candado-settings 1 \n",
        "candado-settings 1\ndefault-class complete\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\n\n",
        "candado-settings 1\n\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ngrace-period 10\ndefault-class complete\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class Complete\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class A\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class  complete\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete \ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 010\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period +10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period -1\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 3601\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 99999999999999999999\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 1e1\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period ١٠\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries True\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries 0\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries\n",
        "candado-settings 1\r\ndefault-class complete\r\ngrace-period 10\r\nerase-after-ten-tries false\r\n",
        "\u{FEFF}candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 1\ndefault-class complete\u{0}\ngrace-period 10\nerase-after-ten-tries false\n",
        "candado-settings 2\n", "candado-settings 02\n", "candado-settings 0\n", "candado-settings x\n",
        "candado-settings 01\n",
    ])
    func everyOtherFormIsRefused(text: String) {
        #expect(code { try Settings(decoding: Array(text.utf8)) } == .invalidArgument, "\(text.debugDescription)")
    }

    @Test(arguments: [
        "candado-settings 4\n", "candado-settings 4\nanything at all\n", "candado-settings 10\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\nlock-on-full-moon true\n",
    ])
    func whatIsFromTheFutureSaysSo(text: String) {
        #expect(code { try Settings(decoding: Array(text.utf8)) } == .needsNewerVersion)
    }

    @Test func bytesThatAreNoTextAreRefused() {
        var newer = Settings()
        newer.usesSecretMemory = false
        for good in [Settings().encoded, newer.encoded] {
            for index in good.indices {
                var bytes = good
                bytes[index] = 0xFF
                #expect(code { try Settings(decoding: bytes) } == .invalidArgument)
                #expect(code { try Settings(decoding: Array(good[..<index])) } == .invalidArgument)
            }
        }
    }

    @Test func nothingIsWrittenThatWouldNotBeRead() throws {
        let app = try AppFixture()
        let home = app.protection.home
        var settings = Settings()
        settings.gracePeriod = 7
        try settings.write(to: home)
        settings.gracePeriod = 3601
        #expect(code { try settings.write(to: home) } == .invalidArgument)
        #expect(try Settings.read(from: home).gracePeriod == 7)
        settings.gracePeriod = 7
        settings.idleTime = 9
        #expect(code { try settings.write(to: home) } == .invalidArgument)
        #expect(try Settings.read(from: home).idleTime == 0)
        // Somebody else's to write: not to be believed.
        try app.directory.write(Settings().encoded, to: "home/settings", permissions: 0o666)
        #expect(code { try Settings.read(from: home) } == .system(ErrorNumber.accessDenied))
        #expect(code { try FileProtection.open(home) } == .system(ErrorNumber.accessDenied))
        try app.directory.write(Array("garbage".utf8), to: "home/settings", permissions: 0o600)
        #expect(code { try FileProtection.open(home) } == .invalidArgument)
    }
}
