import FileProtection
import TestSupport
import Testing

/// The worked examples of docs/formats/settings.md.
@Suite struct SettingsPageTests {
    @Test func theExamplesOfThePageAreWhatItSaysAndComeBack() throws {
        var idle = Settings()
        idle.idleTime = 300
        var logging = Settings()
        logging.logsKeychainReads = true
        for (name, settings) in [("settings", Settings()), ("settings-2", idle), ("settings-3", logging)] {
            let example = try example(name)
            #expect(try Settings(decoding: example) == settings)
            #expect(settings.encoded == example)
        }
    }

    private func example(_ name: String) throws -> [UInt8] {
        let page = FilePath("\(#filePath)")!.parent.parent.parent.appending("docs/formats/settings.md")
        let text = String(
            decoding: try SafeFile.read(
                page, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared),
            as: UTF8.self)
        let start = try #require(text.firstRange(of: "```text \(name)\n"))
        let end = try #require(text[start.upperBound...].firstRange(of: "```"))
        return Array(text[start.upperBound..<end.lowerBound].utf8)
    }
}
