import Cryptography
import FileProtection
import ProtectionAudit
import Synchronization
import TestSupport
import Testing

/// A private directory with two keybags of the cheapest passcode, both unlocked, and a tree to audit.
struct AuditFixture {
    let directory: TemporaryDirectory
    let own: FileProtection
    let foreign: FileProtection
    let system: any SystemCalls = LinuxSystemCalls.shared

    init(_ place: TemporaryDirectory.Place = .memory) throws {
        directory = try TemporaryDirectory(place)
        own = try Self.protection(directory.appending("home"))
        foreign = try Self.protection(directory.appending("other-home"))
        try directory.makeDirectory("tree")
    }

    private static func protection(_ home: FilePath) throws -> FileProtection {
        let bytes = Array("correct horse".utf8)
        let keybag = try Keybag.create(
            in: KeybagHome(directory: home),
            passcode: try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) },
            recoveryKey: nil, cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)), clock: TestClock())
        return try FileProtection.attach(keybag)
    }

    var root: FilePath { directory.appending("tree") }
    func path(_ name: FilePath) -> FilePath { root.appending(name) }

    func plain(_ name: FilePath, _ text: String = "plain text") throws {
        try directory.write(Array(text.utf8), to: FilePath("tree").appending(name))
    }

    func protected(_ name: FilePath, _ protectionClass: ProtectionClass = .none, foreign: Bool = false) throws {
        try (foreign ? self.foreign : own).write(Array("secret text".utf8), to: path(name), class: protectionClass)
    }

    func makeDirectory(_ name: FilePath) throws { try directory.makeDirectory(FilePath("tree").appending(name)) }

    func setAttribute(_ name: FilePath, _ value: [UInt8]?) throws {
        let file = try system.openFile(path(name), [.read])
        if let value {
            try system.setAttribute(KeyRecord.attributeName, of: file.number, to: value, replacing: .allowed)
        } else {
            try system.removeAttribute(KeyRecord.attributeName, of: file.number)
        }
    }

    func attribute(_ name: FilePath) throws -> [UInt8] {
        try #require(try system.attribute(KeyRecord.attributeName, of: path(name), in: currentDirectory))
    }

    /// Writes bytes into a file as it lies on the disk.
    func overwrite(_ name: FilePath, at offset: Int64 = 0, _ bytes: [UInt8]) throws {
        let file = try system.openFile(path(name), [.write])
        try bytes.withUnsafeBytes { try system.writeFully(file.number, $0, at: offset) }
    }

    func truncate(_ name: FilePath, to length: Int64) throws {
        let file = try system.openFile(path(name), [.write])
        try system.truncate(file.number, to: length)
    }

    /// Runs a command in the tree that must succeed.
    func shell(_ line: String) throws {
        let result = try Command.run("sh", ["-c", line], directory: root)
        try #require(result.status == 0, "\(line): \(result.errorText)")
    }
}

/// What an audit said, entry by entry in its order, and in bytes.
struct AuditRun {
    var entries: [AuditEntry] = []
    var text = ""
    var failures: [ProtectionError] = []
    var summary = AuditSummary()

    /// Audits with every format at once. `format` is what `text` is in.
    init(
        _ paths: [FilePath], _ options: Audit.Options = Audit.Options(), format: (any AuditFormat)? = nil,
        _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws {
        let collecting = CollectingFormat(format ?? CollectingFormat.json)
        let text = Mutex<[UInt8]>([])
        let failures = Mutex<[ProtectionError]>([])
        summary = try Audit(options, system).run(
            paths, format: collecting, failure: { error in failures.withLock { $0.append(error) } },
            output: { bytes in
                text.withLock { $0 += bytes }
                return true
            })
        let bytes = text.withLock { $0 }
        self.text = String(decoding: bytes, as: UTF8.self)
        self.failures = failures.withLock { $0 }
        entries = collecting.entries.withLock { $0 }
    }

    /// What was inspected, by the path below `root`.
    func files(below root: FilePath) -> [FilePath: AuditedFile] {
        var result: [FilePath: AuditedFile] = [:]
        for entry in entries {
            if case .inspected(let file) = entry.outcome { result[entry.path.below(root)] = file }
        }
        return result
    }

    /// What was skipped, by the path below `root`.
    func skipped(below root: FilePath) -> [FilePath: AuditSkip] {
        var result: [FilePath: AuditSkip] = [:]
        for entry in entries {
            if case .skipped(let reason) = entry.outcome { result[entry.path.below(root)] = reason }
        }
        return result
    }

    var lines: [String] { text.split(separator: "\n").map(String.init) }
}

/// Keeps every entry that another format is given. With more than one thread their order means nothing.
final class CollectingFormat: AuditFormat {
    static let json = AuditJSONFormat { Array("{\"message\":\"\($0.message)\"}".utf8) }

    let entries = Mutex<[AuditEntry]>([])
    private let inner: any AuditFormat
    var showsEveryEntry: Bool { inner.showsEveryEntry }

    init(_ inner: any AuditFormat) { self.inner = inner }

    func append(_ entry: AuditEntry, to text: inout [UInt8]) {
        entries.withLock { $0.append(entry) }
        inner.append(entry, to: &text)
    }

    func append(_ summary: AuditSummary, to text: inout [UInt8]) { inner.append(summary, to: &text) }
}

extension FilePath {
    /// What is behind the root and a slash; `.` for the root itself.
    func below(_ root: FilePath) -> FilePath {
        if self == root { return .current }
        return FilePath(bytes: Array(bytes.dropFirst(root.bytes.count + 1))) ?? .current
    }
}
