import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// A small container whose bytes a test can spoil and put right again.
final class DamageSample {
    enum Kind: String, CaseIterable, Sendable {
        case empty
        case oneByte = "one byte"
        case twoChunks = "5000 bytes"
        /// Grown, cut and overwritten through a handle, and closed.
        case edited = "edited and closed"
        /// Left by a writer that was killed after a sync: overwritten, cut and grown, all of it in the log.
        case openLog = "with a redo log"
    }

    let fixture: FilesFixture
    let path: FilePath
    let content: [UInt8]
    /// What the content was before each operation that is in the log; a log that is torn ends in one of these.
    let earlier: [[UInt8]]
    let original: [UInt8]
    let attribute: [UInt8]
    let logOffset: Int
    let file: Descriptor

    init(_ kind: Kind, _ protectionClass: ProtectionClass) throws {
        fixture = try FilesFixture()
        path = fixture.path("sample")
        var content = pattern([.empty: 0, .oneByte: 1, .twoChunks: 5000, .edited: 9000, .openLog: 9000][kind] ?? 0)
        var earlier: [[UInt8]] = []
        try fixture.files.write(content, to: path, class: protectionClass)
        if kind == .edited || kind == .openLog {
            let handle = try fixture.files.open(path, for: .updating)
            earlier.append(content)
            let change = pattern(5000, seed: 77)
            try handle.write(change, at: 100)
            content.replaceSubrange(100..<5100, with: change)
            earlier.append(content)
            try handle.truncate(to: 4500)
            content.removeSubrange(4500...)
            earlier.append(content)
            try handle.write([1, 2, 3], at: 4500)
            content += [1, 2, 3]
            if kind == .edited { try handle.close() } else { try handle.synchronize() }
        }
        self.content = content
        self.earlier = kind == .openLog ? earlier : []
        original = try fixture.directory.read("files/sample")
        file = try LinuxSystemCalls.shared.openFile(path, [.read, .write])
        attribute = try LinuxSystemCalls.shared.attribute(KeyRecord.attributeName, of: file.number) ?? []
        let sizeWithoutLog = ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: UInt64(content.count)))
        logOffset =
            original.withUnsafeBytes { bytes in
                Int((0..<2).map { bytes.number(at: $0 * 512 + 40, as: UInt64.self) }.max() ?? 0)
            } * (kind == .openLog ? 1 : 0)
        #expect((original.count == sizeWithoutLog) == (kind != .openLog) && (logOffset > 0) == (kind == .openLog))
        #expect(try fixture.files.contents(of: path) == content)
    }

    /// The places of the file that hold something: all, but for the room between content and log.
    var interestingBytes: [Int] {
        guard logOffset > 0 else { return Array(original.indices) }
        return Array(0..<(3 * 4096 + 4096)) + Array(logOffset..<original.count)
    }

    func put(_ bytes: [UInt8], at offset: Int) throws {
        try bytes.withUnsafeBytes { try LinuxSystemCalls.shared.writeFully(file.number, $0, at: Int64(offset)) }
    }

    func setAttribute(_ bytes: [UInt8]) throws {
        try LinuxSystemCalls.shared.setAttribute(
            KeyRecord.attributeName, of: file.number, to: bytes, replacing: .allowed)
    }

    func cut(at length: Int) throws { try LinuxSystemCalls.shared.truncate(file.number, to: Int64(length)) }

    /// Puts back what a cut took.
    func restore(from length: Int) throws {
        var start = length
        // The room before the log is a hole: it stays one.
        if logOffset > 0, start < logOffset {
            try put(Array(original[start..<min(logOffset, max(start, 5 * 4096))]), at: start)
            start = logOffset
        }
        try put(Array(original[start...]), at: start)
    }

    enum Result: Equatable, CustomStringConvertible {
        case identical
        /// The content of an earlier moment.
        case earlier
        case wrong
        case error(ProtectionError.Code)

        var description: String {
            switch self {
            case .identical: "identical"
            case .earlier: "earlier"
            case .wrong: "WRONG CONTENT"
            case .error(let code): "\(code)"
            }
        }
    }

    private var looks = 0

    /// What a reader gets, through a whole read; and a handle must not say anything else, which is looked at now and then.
    func outcome() -> Result {
        let whole = Self.result(content, earlier) { try fixture.files.contents(of: path) }
        looks += 1
        guard looks % 8 == 1 else { return whole }
        let handle = Self.result(content, earlier) { try fixture.files.open(path, for: .reading).allContent() }
        #expect(whole == handle)
        return whole
    }

    private static func result(_ content: [UInt8], _ earlier: [[UInt8]], _ read: () throws -> [UInt8]) -> Result {
        do {
            let bytes = try read()
            if bytes == content { return .identical }
            return earlier.contains(bytes) ? .earlier : .wrong
        } catch {
            guard let error = error as? ProtectionError else { return .wrong }
            return .error(error.code)
        }
    }
}

/// What came out where, in runs of bytes: the whole truth of a walk in a few lines.
struct DamageMap {
    private(set) var runs: [(range: ClosedRange<Int>, result: DamageSample.Result)] = []

    mutating func add(_ index: Int, _ result: DamageSample.Result) {
        if let last = runs.last, last.result == result, last.range.lowerBound - 1 == index {
            runs[runs.count - 1].range = index...last.range.upperBound
        } else if let last = runs.last, last.result == result, last.range.upperBound + 1 == index {
            runs[runs.count - 1].range = last.range.lowerBound...index
        } else {
            runs.append((index...index, result))
        }
    }

    var lines: [String] { runs.map { "\($0.range.lowerBound)-\($0.range.upperBound): \($0.result)" } }
}
