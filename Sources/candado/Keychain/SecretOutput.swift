import FileProtection
import Glibc
import KeychainModel

/// Writes the secret of an item, byte for byte, from secret memory to a descriptor.
struct SecretOutput {
    private let context: CommandContext
    private let descriptor: Int32
    private let guardsTerminal: Bool

    init(_ context: CommandContext) throws {
        self.context = context
        let given = context.invocation.number(.outputDescriptor) ?? 1
        guard let narrow = Int32(exactly: given) else {
            throw UsageError("'--output-fd' needs the number of an open descriptor")
        }
        descriptor = narrow
        guardsTerminal = context.invocation.operands.isEmpty && isatty(narrow) == 1
    }

    /// Nothing before it and nothing behind it.
    func write(_ secret: ItemSecret) throws {
        let system = context.system
        let isText = guardsTerminal ? secret.withUnsafeBytes { Self.isHarmless($0) } : true
        guard isText else {
            throw CommandFailure(
                .failed, "the secret is not text, and the output is a terminal",
                hints: ["send it to a file or a pipe, give a single '-', or use --json"])
        }
        try secret.withUnsafeBytes { bytes throws(SystemError) in try system.writeFully(descriptor, bytes) }
    }

    private static func isHarmless(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var check = TextCheck()
        return check.accepts(bytes)
    }

    /// A JSON document on one line, whose last two members are the secret and its encoding.
    func write(_ secret: ItemSecret, _ members: [JSON.Member]) throws {
        let encoding = secret.withUnsafeBytes { JSONSecret.isUTF8($0) } ? "utf-8" : "base64"
        var document = JSON.document(members + [.init("encoding", .string(encoding))]).encoded
        // The secret takes the place of the closing brace.
        document.removeLast()
        let system = context.system
        let descriptor = self.descriptor
        func send(_ bytes: UnsafeRawBufferPointer) throws(SystemError) { try system.writeFully(descriptor, bytes) }
        try Self.send(document + Array(",\"secret\":\"".utf8), to: descriptor, system)
        var writer = try JSONSecret()
        if encoding == "utf-8" {
            try writer.writeText(secret, send)
        } else {
            try writer.writeBase64(secret, send)
        }
        try Self.send(Array("\"}\n".utf8), to: descriptor, system)
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32, _ system: any SystemCalls) throws {
        try bytes.withUnsafeBytes { try system.writeFully(descriptor, $0) }
    }
}
