import Foundation

/// What lies at a place before a call runs on it, without any protection.
struct PlainScene: Sendable, CustomStringConvertible {
    let description: String
    /// The path of what the call is given, below the directory.
    let name: String
    let make: @Sendable (URL) throws -> Void

    private init(
        _ description: String, _ name: String = "it", make: @escaping @Sendable (URL) throws -> Void = { _ in }
    ) {
        self.description = description
        self.name = name
        self.make = make
    }

    private static func file(_ description: String, _ bytes: Data) -> PlainScene {
        PlainScene(description) { try bytes.write(to: $0.appendingPathComponent("it")) }
    }

    private static let list = Data(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><array><integer>1</integer><string>two</string></array></plist>
        """.utf8)
    private static let dictionary = Data(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>one</key><integer>1</integer></dict></plist>
        """.utf8)

    /// True where there is nothing that could be read.
    var isNoFile: Bool { ["nothing", "no directory around it", "a link to nothing"].contains(description) }

    static let all: [PlainScene] = [
        PlainScene("nothing"),
        file("a text", Data("hello\n".utf8)),
        file("an empty file", Data()),
        file("a large file", Data(repeating: 0x61, count: 1_500_001)),
        file("bytes that are no UTF-8", Data([0xC3, 0x28, 0xFF, 0x00, 0x80])),
        file("UTF-8 with a mark", Data([0xEF, 0xBB, 0xBF, 0x68, 0x69])),
        file("UTF-16, low byte first", Data([0xFF, 0xFE, 0x68, 0x00, 0x69, 0x00])),
        file("UTF-16, high byte first", Data([0xFE, 0xFF, 0x00, 0x68, 0x00, 0x69])),
        file("UTF-16 with half a unit more", Data([0xFE, 0xFF, 0x00, 0x68, 0x00])),
        file("UTF-32, low byte first", Data([0xFF, 0xFE, 0, 0, 0x68, 0, 0, 0])),
        file("a property list of an array", list),
        file("a property list of a dictionary", dictionary),
        file("a character set", CharacterSet.lowercaseLetters.bitmapRepresentation),
        file(
            "an archive",
            (try? NSKeyedArchiver.archivedData(withRootObject: NSString(string: "x"), requiringSecureCoding: false))
                ?? Data()),
        PlainScene("a file with other permissions") {
            let it = $0.appendingPathComponent("it")
            try Data("hello\n".utf8).write(to: it)
            try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: it.path)
        },
        PlainScene("a directory") {
            try FileManager.default.createDirectory(
                at: $0.appendingPathComponent("it"), withIntermediateDirectories: false)
        },
        PlainScene("no directory around it", "no/it"),
        PlainScene("a file for a directory around it", "file/it") {
            try Data("x".utf8).write(to: $0.appendingPathComponent("file"))
        },
        PlainScene("a name that is too long", String(repeating: "n", count: 256)),
        PlainScene("a name with spaces and signs", "ä b%41#?;é") {
            try Data("signs\n".utf8).write(to: $0.appendingPathComponent("ä b%41#?;é"))
        },
        PlainScene("a link to a file") {
            try Data("at the end\n".utf8).write(to: $0.appendingPathComponent("end"))
            try FileManager.default.createSymbolicLink(
                atPath: $0.appendingPathComponent("it").path, withDestinationPath: "end")
        },
        PlainScene("a link to a link in another directory") {
            let inner = $0.appendingPathComponent("inner")
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
            try Data("at the end\n".utf8).write(to: inner.appendingPathComponent("end"))
            try FileManager.default.createSymbolicLink(
                atPath: inner.appendingPathComponent("second").path, withDestinationPath: "end")
            try FileManager.default.createSymbolicLink(
                atPath: $0.appendingPathComponent("it").path, withDestinationPath: "inner/second")
        },
        PlainScene("a link to nothing") {
            try FileManager.default.createSymbolicLink(
                atPath: $0.appendingPathComponent("it").path, withDestinationPath: "nothing")
        },
        PlainScene("a link to itself") {
            try FileManager.default.createSymbolicLink(
                atPath: $0.appendingPathComponent("it").path, withDestinationPath: "it")
        },
        PlainScene("a directory that is a link", "link/it") {
            let inner = $0.appendingPathComponent("inner")
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
            try Data("inside\n".utf8).write(to: inner.appendingPathComponent("it"))
            try FileManager.default.createSymbolicLink(
                atPath: $0.appendingPathComponent("link").path, withDestinationPath: "inner")
        },
        PlainScene("a file with two names") {
            let it = $0.appendingPathComponent("it")
            try Data("twice\n".utf8).write(to: it)
            try FileManager.default.linkItem(at: it, to: $0.appendingPathComponent("other"))
        },
    ]
}

/// What came of a call: what it gave or threw, and what then was on the disk. The directory's own path is left out.
struct Outcome: Equatable, CustomStringConvertible {
    var description: String

    init(of call: WholeFileCall, on scene: PlainScene, in directory: URL) throws {
        try scene.make(directory)
        let url = directory.appendingPathComponent(scene.name)
        var lines: [String] = []
        do {
            lines.append(try call.run(url).map { "gave \($0.utf8.count) \($0.prefix(2000))" } ?? "gave nothing")
        } catch {
            let outer = error as NSError
            let beneath = outer.userInfo[NSUnderlyingErrorKey]
            lines.append("threw \(type(of: error)) \(outer.domain) \(outer.code) \(outer.localizedDescription)")
            lines.append("beneath \(beneath.map { "\(type(of: $0)) \($0)" } ?? "nothing")")
            lines.append(
                "path \(outer.userInfo[NSFilePathErrorKey] ?? "none"), URL \(outer.userInfo[NSURLErrorKey] ?? "none")")
        }
        lines += try Self.listing(directory, showsContent: !call.varies)
        description = lines.joined(separator: "\n").replacingOccurrences(of: directory.path, with: "")
        // Temporary names are random.
        description = description.replacingOccurrences(of: "SCF\\.[^ ,]*", with: "SCF", options: .regularExpression)
    }

    /// Names, kinds, permissions, links and content.
    static func listing(_ directory: URL, showsContent: Bool) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: directory.path).sorted().map { name in
            let path = directory.appendingPathComponent(name).path
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let type = attributes[.type] as? FileAttributeType
            let content =
                switch type {
                case .typeSymbolicLink?: try FileManager.default.destinationOfSymbolicLink(atPath: path)
                case .typeRegular?: (FileManager.default.contents(atPath: path) ?? Data()).encoded
                default: ""
                }
            return
                "\(name) \(type?.rawValue ?? "") \(attributes[.posixPermissions] ?? "") \(attributes[.referenceCount] ?? "") "
                + "\(content.utf8.count) \(content.prefix(showsContent ? 400 : 0))"
        }
    }
}
