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
                }
            }
        }
        var settings = Settings()
        for name in Settings.Name.allCases {
            try settings.set(name, to: settings.value(of: name))
            #expect(settings == Settings())
        }
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
        "candado-settings 0\n", "candado-settings x\n", "candado-settings 01\n",
    ])
    func everyOtherFormIsRefused(text: String) {
        #expect(code { try Settings(decoding: Array(text.utf8)) } == .invalidArgument, "\(text.debugDescription)")
    }

    @Test(arguments: [
        "candado-settings 2\n", "candado-settings 2\nanything at all\n", "candado-settings 10\n",
        "candado-settings 1\ndefault-class complete\ngrace-period 10\nerase-after-ten-tries false\nidle-time 5\n",
    ])
    func whatIsFromTheFutureSaysSo(text: String) {
        #expect(code { try Settings(decoding: Array(text.utf8)) } == .needsNewerVersion)
    }

    @Test func bytesThatAreNoTextAreRefused() {
        let good = Settings().encoded
        for index in good.indices {
            var bytes = good
            bytes[index] = 0xFF
            #expect(code { try Settings(decoding: bytes) } == .invalidArgument)
            #expect(code { try Settings(decoding: Array(good[..<index])) } == .invalidArgument)
        }
    }

    @Test func nothingIsWrittenThatWouldNotBeRead() throws {
        let app = try AppFixture()
        let home = app.protection.keybag.home
        var settings = Settings()
        settings.gracePeriod = 7
        try settings.write(to: home)
        settings.gracePeriod = 3601
        #expect(code { try settings.write(to: home) } == .invalidArgument)
        #expect(try Settings.read(from: home).gracePeriod == 7)
        // Somebody else's to write: not to be believed.
        try app.directory.write(Settings().encoded, to: "home/settings", permissions: 0o666)
        #expect(code { try Settings.read(from: home) } == .system(ErrorNumber.accessDenied))
        #expect(code { try FileProtection.open(home) } == .system(ErrorNumber.accessDenied))
        try app.directory.write(Array("garbage".utf8), to: "home/settings", permissions: 0o600)
        #expect(code { try FileProtection.open(home) } == .invalidArgument)
    }
}
