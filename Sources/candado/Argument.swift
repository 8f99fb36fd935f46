import LinuxSystem

/// One word of the command line, as bytes: a path need not be UTF-8.
struct Argument: Hashable, Sendable {
    /// The bytes. The kernel's words never hold a NUL.
    let path: FilePath

    /// Takes over a word.
    init(_ path: FilePath) { self.path = path }

    /// Nil when the text holds a NUL.
    init?(_ text: String) {
        guard let path = FilePath(text) else { return nil }
        self.path = path
    }

    /// The bytes.
    var bytes: [UInt8] { path.bytes }

    /// The text, when the bytes are UTF-8.
    var text: String? { path.text }

    /// The text between quotes and with everything harmful escaped.
    var quoted: String { path.quoted }

    /// True for the single dash that stands for stdin or stdout.
    var isDash: Bool { bytes == [UInt8(ascii: "-")] }

    /// The words that this process was started with, less its own name.
    static var ofThisProcess: [Argument] {
        var result: [Argument] = []
        let count = Int(CommandLine.argc)
        guard count > 1 else { return result }
        result.reserveCapacity(count - 1)
        for index in 1..<count {
            guard let word = CommandLine.unsafeArgv[index] else { break }
            var bytes: [UInt8] = []
            var position = 0
            while word[position] != 0 {
                bytes.append(UInt8(bitPattern: word[position]))
                position += 1
            }
            if let path = FilePath(bytes: bytes) { result.append(Argument(path)) }
        }
        return result
    }
}
