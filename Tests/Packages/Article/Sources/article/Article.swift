import ProtectedFoundation

/// Runs one idiom and prints one line: what came out, or the error's domain, code and what lies beneath.
@main
struct Article {
    static func main() {
        let words = CommandLine.arguments
        guard words.count >= 4 else { return print("usage: article VERB FOLDER NAME [TEXT]") }
        let journal = Journal(folder: URL(fileURLWithPath: words[2], isDirectory: true))
        let name = words[3]
        let text = words.count > 4 ? words[4] : ""
        do {
            print(try run(words[1], journal, name, text))
        } catch {
            print(describe(error))
        }
    }

    static func run(_ verb: String, _ journal: Journal, _ name: String, _ text: String) throws -> String {
        switch verb {
        case "save":
            try journal.save(text, as: name)
            return "saved"
        case "save-atomically":
            try journal.saveAtomically(text, as: name)
            return "saved"
        case "load": return try journal.load(name)
        case "load-text":
            return try String(contentsOf: journal.folder.appendingPathComponent(name), encoding: .utf8)
        case "protect":
            try journal.protectExisting(name, with: FileProtectionType(rawValue: text))
            return "protected"
        case "class":
            let (type, size) = try journal.protection(of: name)
            return "\(type?.rawValue ?? "none given") \(size)"
        case "contents":
            let data = FileManager.default.contents(atPath: journal.folder.appendingPathComponent(name).path)
            return data.map { String(decoding: $0, as: UTF8.self) } ?? "nil"
        case "copy":
            try FileManager.default.copyItem(
                at: journal.folder.appendingPathComponent(name), to: journal.folder.appendingPathComponent(text))
            return "copied"
        case "download": return try download(journal.folder.appendingPathComponent(name))
        default: return "no such verb"
        }
    }

    /// Writes a piece for each line of standard input, and says after each whether it went well.
    static func download(_ url: URL) throws -> String {
        let download = try Download(to: url)
        print("open")
        fflush(nil)
        while let piece = readLine() {
            do {
                try download.receive(piece)
                print("received")
            } catch {
                print(describe(error))
            }
            fflush(nil)
        }
        try download.finish()
        return "finished"
    }

    static func describe(_ error: any Error) -> String {
        let outer = error as NSError
        guard let inner = outer.userInfo[NSUnderlyingErrorKey] as? NSError else {
            return "\(outer.domain) \(outer.code)"
        }
        return "\(outer.domain) \(outer.code), \(inner.domain) \(inner.code)"
    }
}
