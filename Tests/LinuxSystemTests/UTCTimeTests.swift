import LinuxSystem
import Testing

@Suite struct UTCTimeTests {
    /// Made with `date -u -d @N +%FT%TZ`.
    @Test(arguments: [
        (0 as Int64, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
        (1_796_025_845, "2026-11-30T08:04:05Z"), (-1, "1969-12-31T23:59:59Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ])
    func momentsAreWrittenInUTC(seconds: Int64, text: String) { #expect(UTCTime(seconds).description == text) }
}
