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
        let check = Mutex(TextCheck())
        let size = try? system.status(of: path, in: currentDirectory, followLinks: false).size
        // On a terminal it would be drawn into the content.
        let progress = ByteProgress(context, verb: "reading", total: size, isWanted: isatty(output) == 0)
        defer { progress.finish() }
        do {
            let (_, place) = try session.unlocking(canRunAgain: { !begun.isSet }) {
                try session.protection.files.read(path) { bytes in
                    begun.set()
                    try failure.catching {
                        try context.checkInterrupt()
                        if guardsTerminal, !check.withLock({ $0.accepts(bytes) }) { throw notText }
                        try system.writeFully(output, bytes)
                        progress.add(bytes.count)
                    }
                }
            }
            if place == .header {
                context.console.warning(
                    "\(path.quoted) has lost its key record or has a weaker one; 'candado repair' mends it")
            }
        } catch {
            throw failure.error ?? error
        }
        session.showWarnings()
        return .done
    }

    private static let notText = CommandFailure(
        .failed, "the content is not text, and stdout is a terminal",
        hints: ["send it to a file or a pipe, or write '-' behind the path"])
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
