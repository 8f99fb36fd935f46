import Testing

@testable import candado

@Suite("Progress")
struct ProgressMeterTests {
    @Test("Sizes have one digit behind the point and never show 1024 of a unit")
    func sizes() {
        let rows: [(Int64, String)] = [
            (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1_048_575, "1.0 MiB"),
            (1_048_576, "1.0 MiB"), (1 << 40, "1.0 TiB"), (Int64.max, "8.0 EiB"),
        ]
        for (bytes, text) in rows { #expect(ProgressMeter.size(bytes) == text) }
    }

    @Test("The line gives a rate once there is one, and the time left while there is something left")
    func lines() {
        let rows: [(Int?, Int64, Int64?, Double, String)] = [
            (1, 100, nil, 0.1, "protecting: 1 file, 100 B"),
            (2, 2048, nil, 2, "protecting: 2 files, 2.0 KiB, 1.0 KiB/s"),
            (2, 2048, 4096, 2, "protecting: 2 files, 2.0 KiB, 1.0 KiB/s, 2 seconds left"),
            (4, 4096, 4096, 4, "protecting: 4 files, 4.0 KiB, 1.0 KiB/s"),
            (3, 0, 10, 9, "protecting: 3 files, 0 B"),
            (nil, 2048, 4096, 2, "protecting: 2.0 KiB, 1.0 KiB/s, 2 seconds left"),
        ]
        for (files, bytes, total, seconds, text) in rows {
            #expect(
                ProgressMeter.line(verb: "protecting", files: files, bytes: bytes, totalBytes: total, seconds: seconds)
                    == text)
        }
    }
}
