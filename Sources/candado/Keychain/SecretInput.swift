import FileProtection
import Glibc
import KeychainModel

/// Where the secret of an item comes from: byte for byte, into secret memory and nowhere else.
enum SecretInput: Sendable, Hashable {
    /// A person, asked twice.
    case person(PasscodeSource)
    case file(FilePath)
    case descriptor(Int32)

    private static let standardInput: Int32 = 0

    /// The source that a command line names, else stdin, and a person where that is a terminal.
    init(_ context: CommandContext) throws {
        let invocation = context.invocation
        if let argument = invocation.value(.secretFile) {
            self = argument.isDash ? .descriptor(Self.standardInput) : .file(argument.path)
        } else if let number = invocation.number(.secretDescriptor) {
            guard let narrow = Int32(exactly: number) else {
                throw UsageError("'--secret-fd' needs the number of an open descriptor")
            }
            self = .descriptor(narrow)
        } else if isatty(Self.standardInput) == 1 {
            self = .person(PasscodeSource(askingBy: invocation))
        } else {
            self = .descriptor(Self.standardInput)
        }
        if case .descriptor(let number) = self, try PasscodeSource(context) == .descriptor(number) {
            throw UsageError("one descriptor cannot be both the passcode and the secret")
        }
    }

    /// True when the command line names a source.
    static func isNamed(_ invocation: Invocation) -> Bool {
        invocation.has(.secretFile) || invocation.has(.secretDescriptor)
    }

    /// Reads it, to its end.
    func read(_ context: CommandContext) throws -> ItemSecret {
        switch self {
        case .person(let source):
            let question = SecretQuestion(
                prompt: "Secret: ", explanation: "Type the secret that is to be stored.", noun: "secret")
            return ItemSecret(try context.prompt.readTwice(source, question))
        case .file(let path):
            let file = try context.system.openFile(path, [.read])
            return try Self.readAll(file.number, context)
        case .descriptor(let number):
            let secret = try Self.readAll(number, context)
            if secret.count == 0 { context.console.warning("the secret is empty") }
            return secret
        }
    }

    private static func readAll(_ descriptor: Int32, _ context: CommandContext) throws -> ItemSecret {
        var buffer = try SecretBytes(count: 1 << 16)
        var count = 0
        while true {
            if count == buffer.count {
                guard count < ItemSecret.maximumCount else {
                    try requireEnd(descriptor, context)
                    break
                }
                buffer = try larger(buffer)
            }
            let more = try read(descriptor, into: &buffer, from: count, context)
            if more == 0 { break }
            count += more
        }
        guard let exact = try buffer.first(count) else { return ItemSecret() }
        return ItemSecret(exact)
    }

    private static func larger(_ buffer: borrowing SecretBytes) throws -> SecretBytes {
        var result = try SecretBytes(count: min(buffer.count * 4, ItemSecret.maximumCount))
        result.withUnsafeMutableBytes { target in
            buffer.withUnsafeBytes { target.copyMemory(from: $0) }
        }
        return result
    }

    private static func requireEnd(_ descriptor: Int32, _ context: CommandContext) throws {
        var rest = try SecretBytes(count: 1)
        guard try read(descriptor, into: &rest, from: 0, context) == 0 else {
            throw CommandFailure(
                .usage, "the secret has more than \(ItemSecret.maximumCount) bytes",
                hints: ["keep it in a file of class complete: 'candado write'"])
        }
    }

    private static func read(
        _ descriptor: Int32, into buffer: inout SecretBytes, from start: Int, _ context: CommandContext
    ) throws -> Int {
        guard Interrupts.waitForInput(descriptor) else { throw ProtectionError(.cancelled, "interrupted") }
        let system = context.system
        return try buffer.withUnsafeMutableBytes { bytes throws(SystemError) -> Int in
            try system.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
        }
    }
}
