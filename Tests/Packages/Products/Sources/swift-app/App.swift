import ProtectedFoundation

@main
struct App {
    /// swift-app HOME PASSCODE PATH: writes and reads a file of class complete with keys of its own.
    static func main() throws {
        let words = CommandLine.arguments
        try configure(home: words[1], passcode: words[2])
        let url = URL(fileURLWithPath: words[3])
        try Data("from another package".utf8).write(to: url, options: .completeFileProtection)
        let onDisk = try plainBytes(at: words[3])
        print(String(decoding: try Data(contentsOf: url), as: UTF8.self), onDisk > 4096)
    }
}
