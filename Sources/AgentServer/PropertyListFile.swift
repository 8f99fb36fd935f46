import Glibc
import LinuxSystem

/// The bundle identifier in an `Info.plist`: of XML property lists, the one text behind the key `CFBundleIdentifier` at the
/// top. Binary ones are not read.
enum PropertyListFile {
    private static let name: FilePath = "Info.plist"
    private static let maximumSize = 256 * 1024

    /// Nil where there is no such file beside an executable, where it belongs to somebody else than this user or root, or can
    /// be written by others, and where it says nothing.
    static func bundleIdentifier(beside executable: FilePath, _ system: any SystemCalls) -> String? {
        let path = executable.parent.appending(name)
        guard let file = try? system.openFile(path, [.read, .noFollow, .nonBlocking]),
            let status = try? system.status(file.number), status.kind == .regular, status.size <= Int64(maximumSize),
            status.owner == geteuid() || status.owner == 0, status.permissions & 0o022 == 0
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.size))
        guard let count = try? bytes.withUnsafeMutableBytes({ try system.readFully(file.number, into: $0, at: 0) })
        else { return nil }
        return bundleIdentifier(in: Array(bytes.prefix(count)))
    }

    static func bundleIdentifier(in bytes: [UInt8]) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var scanner = Scanner(rest: Substring(text).unicodeScalars)
        // plist, dict, and then keys and values.
        guard scanner.next() == .opening("plist"), scanner.next() == .opening("dict") else { return nil }
        while case .opening("key") = scanner.next() {
            guard case .text(let key) = scanner.next(), scanner.next() == .closing("key") else { return nil }
            guard key == "CFBundleIdentifier" else {
                guard scanner.skipValue() else { return nil }
                continue
            }
            guard scanner.next() == .opening("string"), case .text(let value) = scanner.next(),
                scanner.next() == .closing("string"), isIdentifier(value)
            else { return nil }
            return value
        }
        return nil
    }

    /// Apple's rule: letters, digits, hyphens and dots.
    private static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 155
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E
            }
    }

    /// A piece of XML.
    private enum Token: Equatable {
        case opening(String)
        case closing(String)
        case empty(String)
        case text(String)
        case end
    }

    private struct Scanner {
        var rest: Substring.UnicodeScalarView

        /// The next piece; white space between elements, comments and declarations are passed over.
        mutating func next() -> Token {
            while true {
                let blank = rest.prefix { $0.properties.isWhitespace }
                if rest.dropFirst(blank.count).first == "<" { rest = rest.dropFirst(blank.count) }
                guard let first = rest.first else { return .end }
                guard first == "<" else {
                    let text = rest.prefix { $0 != "<" }
                    rest = rest.dropFirst(text.count)
                    return text.contains("&") ? .end : .text(String(text))
                }
                if passOver("<!--", "-->") || passOver("<?", "?>") || passOver("<!", ">") { continue }
                let tag = rest.prefix { $0 != ">" }
                guard tag.count < rest.count else { return .end }
                rest = rest.dropFirst(tag.count + 1)
                return Self.token(String(tag.dropFirst()))
            }
        }

        private static func token(_ tag: String) -> Token {
            if tag.hasPrefix("/") { return .closing(String(tag.dropFirst())) }
            let name = String(tag.prefix { !$0.isWhitespace && $0 != "/" })
            return tag.hasSuffix("/") ? .empty(name) : .opening(name)
        }

        private mutating func passOver(_ start: String, _ end: String) -> Bool {
            guard rest.starts(with: start.unicodeScalars) else { return false }
            rest = rest.dropFirst(start.unicodeScalars.count)
            while !rest.isEmpty, !rest.starts(with: end.unicodeScalars) { rest = rest.dropFirst() }
            rest = rest.dropFirst(end.unicodeScalars.count)
            return true
        }

        /// One value, whatever it is. False at the end.
        mutating func skipValue() -> Bool {
            var open: [String] = []
            while true {
                switch next() {
                case .opening(let name): open.append(name)
                case .closing(let name):
                    guard open.popLast() == name else { return false }
                case .empty, .text: break
                case .end: return false
                }
                if open.isEmpty { return true }
            }
        }
    }
}
