import FileProtection
import PlainFoundation
import ProtectedFoundation

/// The rows of `Benchmarks/run` about Foundation's calls: ours, which protect, beside Foundation's own. The agent runs
/// already and is unlocked.
///
/// Prints the seconds that all the work took.
@main
struct FoundationBenchmark {
    static let usage = """
        usage: candado-foundation-benchmark --home DIR VERB PATH NUMBER
          write DIR COUNT         write 1 KiB with .completeFileProtection, over the same 50 files
          plain-write DIR COUNT   Foundation's own atomic write of the same
          unprotected-write DIR COUNT   our atomic write of the same without a class; unprotected-read reads them again
          plain-reread DIR COUNT  Foundation's own reading of them
          prepare PATH BYTES      make a protected file of so many bytes; plain-prepare a plain one
          read PATH BYTES         Data(contentsOf:) of a protected file; plain-read Foundation's own of a plain one
        """

    static func main() {
        let words = CommandLine.arguments
        guard words.count == 6, words[1] == "--home", let number = Int(words[5]), let home = FilePath(words[2]) else {
            return finish(64, usage)
        }
        do {
            try FileProtection.configure(.agent(of: KeybagHome(directory: home)))
            guard let seconds = try run(words[3], URL(fileURLWithPath: words[4]), number) else {
                return finish(64, usage)
            }
            print(seconds)
        } catch {
            finish(1, "candado-foundation-benchmark: \(words[3]): \(error)")
        }
    }

    static func finish(_ status: Int32, _ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
        exit(status)
    }

    static func run(_ verb: String, _ url: URL, _ number: Int) throws -> Double? {
        let small = Data(repeating: 7, count: 1024)
        switch verb {
        case "write":
            // The connection is there when an app writes.
            try small.write(to: url.appendingPathComponent("first"), options: .completeFileProtection)
            return try each(number, url) { try small.write(to: $0, options: .completeFileProtection) }
        case "plain-write":
            return try each(number, url) { try PlainFoundation.write(small, to: $0, .atomic) }
        case "unprotected-write":
            return try each(number, url) { try small.write(to: $0, options: .atomic) }
        case "unprotected-read":
            return try each(number, url) { try check(Data(contentsOf: $0), small.count) }
        case "plain-reread":
            return try each(number, url) { try check(PlainFoundation.contents(of: $0, []), small.count) }
        case "prepare":
            return try seconds { try large(number).write(to: url, options: .completeFileProtection) }
        case "plain-prepare":
            return try seconds { try PlainFoundation.write(large(number), to: url, []) }
        case "read":
            return try seconds { try check(Data(contentsOf: url), number) }
        case "plain-read":
            return try seconds { try check(PlainFoundation.contents(of: url, []), number) }
        default: return nil
        }
    }

    static func each(_ count: Int, _ folder: URL, _ body: (URL) throws -> Void) throws -> Double {
        let files = (0..<50).map { folder.appendingPathComponent("file-\($0)") }
        return try seconds { for index in 0..<count { try body(files[index % files.count]) } }
    }

    static func large(_ count: Int) -> Data {
        var data = Data(count: count)
        data.withUnsafeMutableBytes { (bytes: UnsafeMutableRawBufferPointer) in
            for offset in stride(from: 0, to: count, by: 4096) {
                bytes[offset] = UInt8(truncatingIfNeeded: offset >> 12)
            }
        }
        return data
    }

    static func check(_ data: Data, _ count: Int) throws {
        guard data.count == count else { throw CocoaError(.fileReadCorruptFile) }
    }

    static func seconds(_ body: () throws -> Void) throws -> Double {
        let duration = try ContinuousClock().measure(body)
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}
