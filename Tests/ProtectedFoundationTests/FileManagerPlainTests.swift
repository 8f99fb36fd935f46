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
        Case("attributes of no path") { calls, _ in told(try calls.attributes("")) },
    ]

    static let contentCases: [Case] = [
        Case("a file is made") { "\($0.createFile($1 + "new", data, nil))" },
        Case("an empty file is made") { "\($0.createFile($1 + "new", nil, nil))" },
        Case("a file is made with permissions") { "\($0.createFile($1 + "new", data, [.posixPermissions: 0o604]))" },
        Case("a file is replaced") { "\($0.createFile($1 + "a", data, nil))" },
        Case("a file is replaced through a link") { "\($0.createFile($1 + "link", data, nil))" },
        Case("a file is made without a parent") { "\($0.createFile($1 + "none/new", data, nil))" },
        Case("a file is made in a directory's place") { "\($0.createFile($1 + "d", data, nil))" },
        Case("a file without a name") { calls, _ in "\(calls.createFile("", data, nil))" },
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
        Case("a copy that the delegate refuses") { try copyAsking($0, $1, "a", "new", FilesDelegate(allows: false)) },
        Case("a copy over a file that the delegate passes over") {
            try copyAsking($0, $1, "a", "same", FilesDelegate(proceeds: true))
        },
        Case("the delegate is asked of a copy") { try copyAsking($0, $1, "a", "new", FilesDelegate()) },
        Case("the delegate is asked of each copy of a tree") { try copyAsking($0, $1, "d", "new", FilesDelegate()) },
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
            try moveAsking($0, $1, "d", "new", FilesDelegate(allows: false))
        },
        Case("the delegate is asked of a directory's move") { try moveAsking($0, $1, "d", "new", FilesDelegate()) },
        Case("a directory's move over a file that the delegate does not stop") {
            try moveAsking($0, $1, "d", "same", FilesDelegate(proceeds: true))
        },
        Case("a move over a file that the delegate allows") {
            try moveAsking($0, $1, "a", "same", FilesDelegate(proceeds: true))
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
        Case("a directory without a name") { calls, _ in try calls.makeDirectory("", false, nil) },
        Case("a directory's URL that is no file's") { calls, _ in try calls.makeDirectory(try web(), false) },
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

    private static func copyAsking(
        _ calls: any FilesCalls, _ scene: String, _ source: String, _ target: String, _ delegate: FilesDelegate
    ) throws -> String {
        let failure = thrownBy { try calls.copy(scene + source, scene + target, delegate) }
        return "\(failure as Any) \(delegate.asked)"
    }

    private static func moveAsking(
        _ calls: any FilesCalls, _ scene: String, _ source: String, _ target: String, _ delegate: FilesDelegate
    ) throws -> String {
        let failure = thrownBy { try calls.move(scene + source, scene + target, delegate) }
        return "\(failure as Any) \(delegate.asked)"
    }

    private static func web() throws -> URL { try #require(URL(string: "https://example.org/a")) }
}
