import FileProtection
import Glibc
import Synchronization

/// `candado read`
enum ReadCommand {
    private static let output: Int32 = 1

    static func run(_ context: CommandContext) throws -> ExitStatus {
        let path = context.invocation.operands[0].path
        let asksForBytes = context.invocation.operands.count > 1
        let system = context.system
        try SameFile.refuse(path, output, "stdout", system)
        let session = try Session(context)
        let guardsTerminal = !asksForBytes && isatty(output) == 1
        let begun = Flag()
        let failure = FirstFailure()
        do {
            _ = try session.unlocking(canRunAgain: { !begun.isSet }) {
                try session.protection.files.read(path) { bytes in
                    begun.set()
                    try failure.catching {
                        try context.checkInterrupt()
                        if guardsTerminal, !isText(bytes) { throw notText }
                        try system.writeFully(output, bytes)
                    }
                }
            }
        } catch {
            throw failure.error ?? error
        }
        return .done
    }

    private static let notText = CommandFailure(
        .failed, "the content is not text, and stdout is a terminal",
        hints: ["send it to a file or a pipe, or write '-' behind the path"])

    /// True for bytes that do a terminal no harm: UTF-8, and no controls but white space. A character that the end of the
    /// bytes cuts in two is let pass.
    static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
        for byte in bytes where byte < 0x20 || byte == 0x7F {
            guard (0x08...0x0D).contains(byte) else { return false }
        }
        for cut in 0...min(3, bytes.count) where isUTF8(bytes.dropLast(cut)) { return true }
        return false
    }

    private static func isUTF8(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        String(validating: bytes, as: UTF8.self) != nil
    }
}

/// Set once, from any thread.
final class Flag: Sendable {
    private let state = Atomic<Bool>(false)
    var isSet: Bool { state.load(ordering: .relaxed) }
    func set() { state.store(true, ordering: .relaxed) }
}

/// Keeps the first error that a callback threw, which a library in between may have wrapped.
final class FirstFailure: Sendable {
    private let state = Mutex<(any Error)?>(nil)

    var error: (any Error)? { state.withLock { $0 } }

    /// Runs `body`, and keeps what it throws.
    func catching<R>(_ body: () throws -> R) throws -> R {
        do {
            return try body()
        } catch {
            state.withLock { if $0 == nil { $0 = error } }
            throw error
        }
    }
}

/// Input and output that are one file: the result would destroy it.
enum SameFile {
    /// Throws when an open descriptor is the file at a path.
    static func refuse(_ path: FilePath, _ descriptor: Int32, _ name: String, _ system: any SystemCalls) throws {
        guard let open = try? system.status(descriptor), open.kind == .regular,
            let named = try? system.status(of: path, in: currentDirectory, followLinks: true)
        else { return }
        if FileIdentity(open) == FileIdentity(named) {
            throw CommandFailure(.failed, "\(path.quoted) is also \(name): it would destroy itself")
        }
    }
}
