import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// One table of cases for plain files in unprotected places: Foundation's own calls and ours have to do the same, without a
/// home, a keybag or an agent.
@Suite struct FileManagerPlainTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        /// Gets the calls and a fresh scene's path, with a slash at its end; returns what is to be compared.
        let body: @Sendable (any FilesCalls, String) throws -> String
        var testDescription: String { name }

        init(_ name: String, _ body: @escaping @Sendable (any FilesCalls, String) throws -> String) {
            self.name = name
            self.body = body
        }

        init(_ name: String, _ body: @escaping @Sendable (any FilesCalls, String) throws -> Void) {
            self.name = name
            self.body = {
                try body($0, $1)
                return "done"
            }
        }
    }

    static let data = Data("plain".utf8)

    static let attributeCases: [Case] = [
        Case("permissions are set") { try $0.setAttributes([.posixPermissions: 0o640], $1 + "a") },
        Case("a date is set") {
            try $0.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1_000_000)], $1 + "a")
        },
        Case("attributes of nothing") { try $0.setAttributes([.posixPermissions: 0o640], $1 + "none") },
        Case("no attributes at all") { try $0.setAttributes([:], $1 + "none") },
        Case("through a link") { try $0.setAttributes([.posixPermissions: 0o640], $1 + "link") },
        Case("attributes of a file") { told(try $0.attributes($1 + "a")) },
        Case("attributes of a directory") { told(try $0.attributes($1 + "d")) },
        Case("attributes of a link") { told(try $0.attributes($1 + "link")) },
        Case("attributes that are not there") { told(try $0.attributes($1 + "none")) },
        Case("attributes of no path") { told(try $0.attributes("")) },
    ]

    static let contentCases: [Case] = [
        Case("a file is made") { "\($0.createFile($1 + "new", data, nil))" },
        Case("an empty file is made") { "\($0.createFile($1 + "new", nil, nil))" },
        Case("a file is made with permissions") { "\($0.createFile($1 + "new", data, [.posixPermissions: 0o604]))" },
        Case("a file is replaced") { "\($0.createFile($1 + "a", data, nil))" },
        Case("a file is replaced through a link") { "\($0.createFile($1 + "link", data, nil))" },
        Case("a file is made without a parent") { "\($0.createFile($1 + "none/new", data, nil))" },
        Case("a file is made in a directory's place") { "\($0.createFile($1 + "d", data, nil))" },
        Case("a file without a name") { "\($0.createFile("", data, nil))" },
        Case("content") { told($0.contents($1 + "a")) },
        Case("content of an empty file") { told($0.contents($1 + "empty")) },
        Case("content through a link") { told($0.contents($1 + "link")) },
        Case("content of a directory") { told($0.contents($1 + "d")) },
        Case("content of nothing") { told($0.contents($1 + "none")) },
        Case("equal files") { "\($0.equal($1 + "a", $1 + "same"))" },
        Case("files that differ") { "\($0.equal($1 + "a", $1 + "d/inner"))" },
        Case("a link and a file") { "\($0.equal($1 + "link", $1 + "a"))" },
        Case("equal trees") { "\($0.equal($1 + "d", $1 + "twin"))" },
        Case("a tree and a file") { "\($0.equal($1 + "d", $1 + "a"))" },
        Case("nothing is equal to nothing") { "\($0.equal($1 + "none", $1 + "none"))" },
    ]

    static let movingCases: [Case] = [
        Case("a file is copied") { try $0.copy($1 + "a", $1 + "new", nil) },
        Case("a file is copied by URL") {
            try $0.copy(URL(fileURLWithPath: $1 + "a"), URL(fileURLWithPath: $1 + "new"))
        },
        Case("a URL that is no file's") { try $0.copy(URL(fileURLWithPath: $1 + "a"), try web()) },
        Case("a link is copied") { try $0.copy($1 + "link", $1 + "new", nil) },
        Case("a tree is copied") { try $0.copy($1 + "d", $1 + "new", nil) },
        Case("a tree is copied below what is missing") { try $0.copy($1 + "d", $1 + "none/new", nil) },
        Case("a copy over a file") { try $0.copy($1 + "a", $1 + "same", nil) },
        Case("a copy of nothing") { try $0.copy($1 + "none", $1 + "new", nil) },
        Case("a copy without a parent") { try $0.copy($1 + "a", $1 + "none/new", nil) },
        Case("a copy that the delegate refuses") { try $0.copy($1 + "a", $1 + "new", Delegate(allows: false)) },
        Case("a copy over a file that the delegate passes over") {
            try $0.copy($1 + "a", $1 + "same", Delegate(proceeds: true))
        },
        Case("the delegate is asked of each copy") { calls, scene in
            let delegate = Delegate()
            try calls.copy(scene + "a", scene + "new", delegate)
            return delegate.asked.map { $0.replacingOccurrences(of: scene, with: "") }.joined(separator: ",")
        },
        Case("a file is moved") { try $0.move($1 + "a", $1 + "new", nil) },
        Case("a file is moved by URL") {
            try $0.move(URL(fileURLWithPath: $1 + "a"), URL(fileURLWithPath: $1 + "new"))
        },
        Case("a move to a URL that is no file's") { try $0.move(URL(fileURLWithPath: $1 + "a"), try web()) },
        Case("a tree is moved") { try $0.move($1 + "d", $1 + "new", nil) },
        Case("a tree is moved into itself") { try $0.move($1 + "d", $1 + "d/new", nil) },
        Case("a move over a file") { try $0.move($1 + "a", $1 + "same", nil) },
        Case("a directory's move over a file") { try $0.move($1 + "d", $1 + "same", nil) },
        Case("a directory's move without a parent") { try $0.move($1 + "d", $1 + "none/new", nil) },
        Case("a move of nothing") { try $0.move($1 + "none", $1 + "new", nil) },
        Case("a move without a parent") { try $0.move($1 + "a", $1 + "none/new", nil) },
        Case("a directory's move that the delegate refuses") {
            try $0.move($1 + "d", $1 + "new", Delegate(allows: false))
        },
        Case("a move over a file that the delegate allows") {
            try $0.move($1 + "a", $1 + "same", Delegate(proceeds: true))
        },
        Case("a hard link") { try $0.link($1 + "a", $1 + "new") },
    ]

    static let directoryCases: [Case] = [
        Case("a directory is made") { try $0.makeDirectory($1 + "new", false, nil) },
        Case("a directory is made by URL") { try $0.makeDirectory(URL(fileURLWithPath: $1 + "new"), false) },
        Case("directories are made on the way") { try $0.makeDirectory($1 + "new/b/c", true, nil) },
        Case("permissions of directories") { try $0.makeDirectory($1 + "new/b", true, [.posixPermissions: 0o710]) },
        Case("a parent is missing") { try $0.makeDirectory($1 + "new/b", false, nil) },
        Case("a directory is there") { try $0.makeDirectory($1 + "d", false, nil) },
        Case("a directory is there, which is no error") { try $0.makeDirectory($1 + "d", true, nil) },
        Case("a file is there") { try $0.makeDirectory($1 + "a", true, nil) },
        Case("a file is on the way") { try $0.makeDirectory($1 + "a/b", true, nil) },
        Case("a slash at the end") { try $0.makeDirectory($1 + "new/", false, nil) },
        Case("a directory without a name") { try $0.makeDirectory("", false, nil) },
        Case("a directory's URL that is no file's") { try $0.makeDirectory(try web(), false) },
        Case("resource values") {
            try $0.values(URL(fileURLWithPath: $1 + "a"), [.fileSizeKey, .isRegularFileKey, .totalFileSizeKey])
        },
        Case("no resource values") { try $0.values(URL(fileURLWithPath: $1 + "a"), []) },
        Case("resource values of nothing") { try $0.values(URL(fileURLWithPath: $1 + "none"), [.fileSizeKey]) },
    ]

    @Test(arguments: attributeCases + contentCases + movingCases + directoryCases)
    func aPlainFileIsTreatedAsFoundationTreatsIt(_ each: Case) throws {
        let theirs = try Self.outcome(each, FoundationFilesCalls())
        let ours = try Self.outcome(each, OurFilesCalls())
        #expect(theirs == ours)
    }

    /// What a case returned or threw, and what is on the disk after it.
    private static func outcome(_ each: Case, _ calls: any FilesCalls) throws -> String {
        let directory = try TemporaryDirectory(.memory)
        try directory.write(Array("content".utf8), to: "a")
        try directory.write(Array("content".utf8), to: "same")
        try directory.write([], to: "empty")
        for name in ["d", "twin"] {
            try directory.makeDirectory(FilePath(name) ?? "")
            try directory.write(Array("inner".utf8), to: FilePath(name + "/inner") ?? "", permissions: 0o640)
        }
        let root = directory.path.description + "/"
        try FileManager.default.createSymbolicLink(atPath: root + "link", withDestinationPath: "a")
        var result: String
        do {
            result = try each.body(calls, root)
        } catch {
            result = describe(error as NSError)
        }
        result += "\n" + (try listing(of: directory, ""))
        return result.replacingOccurrences(of: root, with: "/").replacingOccurrences(of: root.dropLast(), with: "")
    }

    private static func describe(_ error: NSError) -> String {
        let beneath = (error.userInfo[NSUnderlyingErrorKey] as? any Error).map { $0 as NSError }
        let paths = ["NSFilePath", "NSSourceFilePathErrorKey", "NSDestinationFilePath", "NSUserStringVariant"].map {
            "\($0)=\(error.userInfo[$0] ?? "")"
        }
        return "\(error.domain) \(error.code) \(beneath.map { "\($0.domain) \($0.code)" } ?? "") \(paths)"
    }

    /// Names, kinds, permissions, link counts and content of everything below.
    private static func listing(of directory: TemporaryDirectory, _ inner: String) throws -> String {
        let system = LinuxSystemCalls.shared
        var lines: [String] = []
        for name in try directory.names(in: FilePath(inner.isEmpty ? "." : inner) ?? "") {
            let path = inner.isEmpty ? name : inner + "/" + name
            let status = try system.status(of: FilePath(path) ?? "", in: directory.descriptor, followLinks: false)
            lines.append("\(path) \(status.kind) \(String(status.permissions, radix: 8)) \(status.linkCount)")
            switch status.kind {
            case .directory: lines.append(try listing(of: directory, path))
            case .regular: lines.append(String(decoding: try directory.read(FilePath(path) ?? ""), as: UTF8.self))
            default: lines.append("")
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Attributes without what differs from run to run.
    private static func told(_ attributes: [FileAttributeKey: Any]) -> String {
        attributes.filter { ![.systemFileNumber, .modificationDate, .creationDate].contains($0.key) }
            .map { "\($0.key.rawValue)=\($0.value)" }.sorted().joined(separator: " ")
    }

    private static func told(_ data: Data?) -> String { data.map { String(decoding: $0, as: UTF8.self) } ?? "nil" }

    private static func web() throws -> URL { try #require(URL(string: "https://example.org/a")) }
}

/// Answers as it is told to, and remembers what it was asked.
final class Delegate: FileManagerDelegate, @unchecked Sendable {
    private let allows: Bool
    private let proceeds: Bool
    private(set) var asked: [String] = []
    private(set) var errors: [NSError] = []

    init(allows: Bool = true, proceeds: Bool = false) {
        self.allows = allows
        self.proceeds = proceeds
    }

    func fileManager(_ manager: FileManager, shouldCopyItemAtPath source: String, toPath target: String) -> Bool {
        asked.append("copy \(source) \(target)")
        return allows
    }

    func fileManager(
        _ manager: FileManager, shouldProceedAfterError error: any Error, copyingItemAtPath source: String,
        toPath target: String
    ) -> Bool {
        errors.append(error as NSError)
        return proceeds
    }

    func fileManager(_ manager: FileManager, shouldMoveItemAtPath source: String, toPath target: String) -> Bool {
        asked.append("move \(source) \(target)")
        return allows
    }

    func fileManager(
        _ manager: FileManager, shouldProceedAfterError error: any Error, movingItemAtPath source: String,
        toPath target: String
    ) -> Bool {
        errors.append(error as NSError)
        return proceeds
    }
}
