import Foundation

/// A call that reads or writes a whole file, and what came of it as a text; nil is the call's own nil or false.
///
/// There are two tables of them with the same source: in `WholeFileCalls+Foundation.swift` it means Foundation's calls, in
/// `WholeFileCalls+Ours.swift`, which imports our module in Foundation's place, ours.
struct WholeFileCall: Sendable, CustomStringConvertible {
    enum Effect: Sendable {
        case reads
        case writes
        /// Writes only where there is no file.
        case creates
        /// Fails whatever is there.
        case cannotWrite
    }

    let description: String
    let effect: Effect
    /// Reads no protected file of class complete, in whatever state.
    let refusesComplete: Bool
    /// Writes no protected file.
    let refusesProtected: Bool
    /// What has to be in a file: Foundation ends the process when anything else is.
    let demands: String?
    let run: @Sendable (URL) throws -> String?

    init(
        _ description: String, _ effect: Effect = .reads, refusesComplete: Bool = false, refusesProtected: Bool = false,
        demands: String? = nil,
        run: @escaping @Sendable (URL) throws -> String?
    ) {
        self.description = description
        self.effect = effect
        self.refusesComplete = refusesComplete
        self.refusesProtected = refusesProtected
        self.demands = demands
        self.run = { url in
            let result = try run(url)
            guard let text = result, text.utf8.count < 10_000 else { return result }
            // Addresses in descriptions differ from time to time.
            return text.replacingOccurrences(of: "0x[0-9a-f]{12,16}", with: "*", options: .regularExpression)
        }
    }

    /// What is written.
    static let sample = Data("a sample, not long\n".utf8)
    static let text = "grüß dich\n"

    /// True when the bytes it writes differ from time to time, and only their number does not.
    var varies: Bool { description.hasPrefix("NSKeyedArchiver") }

    static func written(_ write: @escaping (URL) throws -> Void) -> (URL) throws -> String {
        { url in
            try write(url)
            return "written"
        }
    }
}

protocol OlderCalls {
    static var calls: [WholeFileCall] { get }
}

extension Data {
    /// All bytes as a text, by a call that is fast in debug builds too.
    var encoded: String { base64EncodedString() }
}

extension String {
    /// The order in a dictionary differs from time to time.
    var sortedLines: String { split(separator: "\n").sorted().joined(separator: "\n") }
}

extension InputStream {
    /// Opens it and reads to its end.
    var everything: String {
        open()
        defer { close() }
        var data = Data()
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(&buffer, maxLength: buffer.count)
            if count < 0 { return "error \((streamError as NSError?)?.code ?? 0)" }
            if count == 0 { return data.encoded }
            data.append(contentsOf: buffer[..<count])
        }
    }
}

extension OutputStream {
    /// Opens it and writes everything.
    func writing(_ data: Data) -> String {
        open()
        defer { close() }
        let count = data.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: UInt8.self) { $0.baseAddress.map { write($0, maxLength: bytes.count) } ?? 0 }
        }
        return count < 0 ? "error \((streamError as NSError?)?.code ?? 0)" : "\(count)"
    }
}
