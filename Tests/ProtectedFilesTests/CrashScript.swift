import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport

@testable import ProtectedFiles

/// How much the crash tests do: a bounded share by default, more with `CANDADO_LONG=1`.
enum Effort {
    static let isLong = getenv("CANDADO_LONG").map { String(cString: $0) == "1" } ?? false

    static func share(_ usual: Int, long: Int) -> Int { isLong ? long : usual }

    /// Images for each prefix of a recording.
    static var images: Int { share(12, long: 150) }
}

/// One step on an open file.
enum CrashStep: Sendable, Hashable, CustomStringConvertible {
    case write(at: Int, count: Int)
    case append(Int)
    case truncate(Int)
    /// What was done so far must be there from now on.
    case synchronize
    /// Closing promises as much as synchronising, when the handle has written.
    case reopen
    /// Goes on with another handle on the same file.
    case changeHandles

    var description: String {
        switch self {
        case .write(let offset, let count): "write \(count) at \(offset)"
        case .append(let count): "append \(count)"
        case .truncate(let length): "truncate \(length)"
        case .synchronize: "sync"
        case .reopen: "reopen"
        case .changeHandles: "other handle"
        }
    }

    /// Some steps, the same for the same seed, on a file that is so long at first.
    static func random(_ count: Int, seed: UInt64, length: Int) -> [CrashStep] {
        var random = DeterministicRandom(seed: seed)
        var length = length
        return (0..<count).map { _ in
            let size = [1, 100, 4096, 5000, 8192].randomElement(using: &random) ?? 1
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<3:
                let offset = Int.random(in: 0...(length + 3000), using: &random)
                length = max(length, offset + size)
                return .write(at: offset, count: size)
            case 3, 4:
                length += size
                return .append(size)
            case 5...7:
                length =
                    [Int.random(in: 0...length, using: &random), length / 4096 * 4096, length / 8192 * 4096]
                    .randomElement(using: &random) ?? 0
                return .truncate(length)
            case 8:
                length += size
                return .truncate(length)
            case 9: return .synchronize
            case 10: return .reopen
            default: return .changeHandles
            }
        }
    }
}

/// Changes one file step by step under a recording, and knows what may be found of it after a power cut.
///
/// The rule that is checked (`docs/formats/container.md`): the content is as after one of the steps from the last one
/// that was acknowledged to the last one begun; where it grew since then, it may end earlier, at a chunk's border.
final class CrashScript {
    struct Broken: Error, CustomStringConvertible { let description: String }

    static let name: FilePath = "file"
    let keys: Keybag
    let directory: FilePath
    let recording: RecordingCalls
    /// The content after each step, and in the middle of those that are documented as two.
    private var states: [[UInt8]]
    private var handle: ProtectedFile?
    private var otherHandle: ProtectedFile?
    private var hasWritten = (here: false, there: false)
    private var seed: UInt64

    private var files: ProtectedFileSystem { ProtectedFileSystem(keys: keys, system: recording.system) }

    /// A recording of a directory in which the file is already.
    init(_ keys: Keybag, in directory: FilePath, content: [UInt8], seed: UInt64 = 7) throws {
        self.keys = keys
        self.directory = directory
        self.seed = seed
        recording = try RecordingCalls(of: directory)
        states = [content]
        recording.mark("begun 0")
        recording.mark("kept 0")
    }

    /// Opens the file, performs the steps, and leaves the handle open unless the last one is to reopen.
    func run(_ steps: [CrashStep]) throws {
        let path = directory.appending(Self.name)
        if handle == nil { handle = try files.open(path, for: .updating) }
        for step in steps {
            guard let handle, let content = states.last else { return }
            seed += 1
            switch step {
            case .write(let offset, let count):
                if offset > content.count { begin(content + [UInt8](repeating: 0, count: offset - content.count)) }
                var next = states[states.count - 1]
                let bytes = pattern(count, seed: seed)
                let overlap = min(next.count - offset, count)
                next.replaceSubrange(offset..<(offset + overlap), with: bytes[..<overlap])
                next += bytes[overlap...]
                begin(next)
                try handle.write(bytes, at: offset)
            case .append(let count):
                let bytes = pattern(count, seed: seed)
                begin(content + bytes)
                try bytes.withUnsafeBytes { _ = try handle.append($0) }
            case .truncate(let length):
                begin(
                    length < content.count
                        ? Array(content[..<length]) : content + [UInt8](repeating: 0, count: length - content.count))
                try handle.truncate(to: UInt64(length))
            case .synchronize:
                try handle.synchronize()
                keep()
            case .reopen:
                try handle.close()
                if hasWritten.here { keep() }
                hasWritten.here = false
                self.handle = try files.open(path, for: .updating)
            case .changeHandles:
                (self.handle, otherHandle) = (try otherHandle ?? files.open(path, for: .updating), handle)
                hasWritten = (hasWritten.there, hasWritten.here)
            }
        }
    }

    private func begin(_ content: [UInt8]) {
        hasWritten.here = true
        states.append(content)
        recording.mark("begun \(states.count - 1)")
    }

    private func keep() { recording.mark("kept \(states.count - 1)") }

    /// Cuts the power everywhere. Every image is opened by a fresh reader and a fresh writer, and written to.
    ///
    /// On every `nestingEvery`-th image the power is cut again while the first writer after the crash recovers and goes
    /// on. Returns the simulation's report and the number of those inner images.
    func check(
        _ name: String, images: Int = Effort.images, models: [CrashModel] = CrashModel.allCases, nestingEvery: Int = 0,
        isQuiet: Bool = false
    ) throws -> (report: PowerCutReport, inner: Int) {
        var limits = PowerCut.Limits(imagesPerPrefix: images, models: models)
        limits.isQuiet = isQuiet
        var count = 0
        var inner = 0
        let report = try PowerCut(recording, limits).check(name) { image in
            count += 1
            let content = try readAfterCrash(image)
            if nestingEvery > 0, count % nestingEvery == 0 {
                inner += try crashAgain(image.directory.path, content, name)
            } else {
                try writeAfterCrash(image.directory.path, content)
            }
            try CrashBystander.check(image.directory.path, keys)
        }
        return (report, inner)
    }

    private func last(_ kind: String, _ image: CrashImage) -> Int {
        image.marks.compactMap { mark in
            mark.hasPrefix(kind + " ") ? Int(mark.dropFirst(kind.count + 1)) : nil
        }.max() ?? 0
    }

    private func readAfterCrash(_ image: CrashImage) throws -> [UInt8] {
        let files = ProtectedFileSystem(keys: keys)
        let path = image.directory.appending(Self.name)
        let content = try files.contents(of: path)
        let (kept, begun) = (last("kept", image), last("begun", image))
        guard isAllowed(content, from: kept, to: begun) else {
            let lengths = states[kept...begun].map(\.count)
            throw Broken(
                description: "\(content.count) bytes are of no step from \(kept) to \(begun) (lengths \(lengths))")
        }
        let reader = try files.open(path, for: .reading)
        guard try reader.allContent().isSame(as: content) else { throw Broken(description: "two readers differ") }
        return content
    }

    private func isAllowed(_ content: [UInt8], from kept: Int, to begun: Int) -> Bool {
        var floor = Int.max
        for index in kept...begun {
            let state = states[index]
            floor = min(floor, state.count)
            if content.isSame(as: state) { return true }
            if content.count < state.count, content.count >= floor, content.count % 4096 == 0,
                content.isSame(as: Array(state.prefix(content.count)))
            {
                return true
            }
        }
        return false
    }

    private static let laterBytes = pattern(5000, seed: 99)

    private func writeAfterCrash(_ directory: FilePath, _ content: [UInt8]) throws {
        let files = ProtectedFileSystem(keys: keys)
        let path = directory.appending(Self.name)
        let writer = try files.open(path, for: .updating)
        guard try writer.allContent().isSame(as: content) else { throw Broken(description: "reader and writer differ") }
        let bytes = Self.laterBytes
        var expected = content
        let middle = content.count / 2
        let part = min(100, content.count - middle)
        if part > 0 {
            try writer.write(Array(bytes[..<part]), at: middle)
            expected.replaceSubrange(middle..<(middle + part), with: bytes[..<part])
        }
        try writer.write(bytes, at: content.count)
        expected += bytes
        guard try writer.allContent().isSame(as: expected) else {
            throw Broken(description: "a write after the crash is lost")
        }
        try writer.close()
        guard try files.contents(of: path).isSame(as: expected) else {
            throw Broken(description: "a write after the crash is lost at close")
        }
        try CrashScript.checkTidy(path, length: expected.count)
    }

    /// A container that was closed has no log, no tail, and the length in both slots.
    static func checkTidy(_ path: FilePath, length: Int) throws {
        let file = try LinuxSystemCalls.shared.openFile(path, [.read])
        let size = try LinuxSystemCalls.shared.status(file.number).size
        guard size == ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: UInt64(length))) else {
            throw Broken(description: "a closed container of \(length) bytes takes \(size)")
        }
    }

    private func crashAgain(_ directory: FilePath, _ content: [UInt8], _ name: String) throws -> Int {
        let script = try CrashScript(keys, in: directory, content: content, seed: seed + 1000)
        try script.run([.append(5000), .write(at: 0, count: 10), .synchronize, .append(3000)])
        let report = try script.check(name + ", again", images: 6, models: [.anySubset], isQuiet: true).report
        guard report.violationCount == 0 else { throw Broken(description: "the second crash: \(report)") }
        return report.imageCount
    }
}

/// A file that nobody writes to while others crash: it must stay as it is.
enum CrashBystander {
    static let name: FilePath = "bystander"
    static let content = pattern(6000, seed: 4711)

    static func make(in fixture: FilesFixture) throws {
        try fixture.files.write(content, to: fixture.path(name), class: .complete)
    }

    static func check(_ directory: FilePath, _ keys: Keybag) throws {
        let found = try ProtectedFileSystem(keys: keys).contents(of: directory.appending(name))
        guard found.isSame(as: content) else {
            throw CrashScript.Broken(description: "a file that nobody wrote to was harmed")
        }
    }
}

extension [UInt8] {
    /// `==` without a call for each byte, which is what a debug build makes of it.
    func isSame(as other: [UInt8]) -> Bool {
        count == other.count
            && withUnsafeBytes { here in
                other.withUnsafeBytes { there in
                    guard let first = here.baseAddress, let second = there.baseAddress else { return true }
                    return memcmp(first, second, here.count) == 0
                }
            }
    }
}
