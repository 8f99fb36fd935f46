import FileProtection
import TestSupport
import Testing

/// The worked example of docs/formats/settings.md.
@Suite struct SettingsPageTests {
    @Test func theExampleOfThePageIsTheDefaultsAndComesBack() throws {
        let page = FilePath("\(#filePath)")!.parent.parent.parent.appending("docs/formats/settings.md")
        let text = String(
            decoding: try SafeFile.read(
                page, in: currentDirectory, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared),
            as: UTF8.self)
        let start = try #require(text.firstRange(of: "```text settings\n"))
        let end = try #require(text[start.upperBound...].firstRange(of: "```"))
        let example = Array(text[start.upperBound..<end.lowerBound].utf8)
        #expect(try Settings(decoding: example) == Settings())
        #expect(Settings().encoded == example)
    }
}
