import LinuxSystem
import ProtectionModel
import Synchronization

// The rules of our user interface:
// - stdout carries only the result. Everything else goes to stderr as `candado: error: `, `candado: warning: ` or
//   `candado: hint: `, in lower case and without a full stop.
// - Prompts go to the terminal itself and nowhere else. Nothing is asked when there is no terminal.
// - Whatever others chose (names, values) is shown between quotes and escaped where it could harm.
// - Text and JSON are made from the same values.
// - Progress is shown on a terminal only, and is erased when it is over.
// - Bytes that are not text do not go to a terminal, unless asked for with `-`.
// - `--quiet` leaves errors and results, and takes warnings, hints and progress away.

/// Where the program speaks. Thread-safe.
final class Console: Sendable {
    private struct State {
        var buffer: [UInt8] = []
        var failure: SystemError?
        var progressIsShown = false
    }

    private static let bufferSize = 64 * 1024

    private let system: any SystemCalls
    private let output: Int32
    private let errors: Int32
    /// True for `--quiet`.
    let isQuiet: Bool
    /// True for `--json`.
    let isJSON: Bool
    private let state = Mutex(State())

    /// Speaks to two descriptors: results to `output`, everything else to `errors`.
    init(system: any SystemCalls, output: Int32 = 1, errors: Int32 = 2, isQuiet: Bool = false, isJSON: Bool = false) {
        self.system = system
        self.output = output
        self.errors = errors
        self.isQuiet = isQuiet
        self.isJSON = isJSON
    }

    // MARK: Results

    /// Adds bytes to the result. After a failure of writing the rest is dropped; ``finish()`` tells.
    func result(_ bytes: some Sequence<UInt8>) {
        state.withLock { state in
            guard state.failure == nil else { return }
            state.buffer.append(contentsOf: bytes)
            if state.buffer.count >= Self.bufferSize { flush(&state) }
        }
    }

    /// Adds a line to the result.
    func line(_ text: String) {
        state.withLock { state in
            guard state.failure == nil else { return }
            state.buffer += text.utf8
            state.buffer.append(UInt8(ascii: "\n"))
            if state.buffer.count >= Self.bufferSize { flush(&state) }
        }
    }

    /// Adds a JSON value on a line of its own to the result.
    func line(_ value: JSON) {
        state.withLock { state in
            guard state.failure == nil else { return }
            value.encode(into: &state.buffer)
            state.buffer.append(UInt8(ascii: "\n"))
            if state.buffer.count >= Self.bufferSize { flush(&state) }
        }
    }

    /// True when nobody takes the result any more: long work that only reports can stop.
    var isBroken: Bool { state.withLock { $0.failure != nil } }

    /// Writes what is left of the result. Returns what went wrong with it, now or before.
    func finish() -> SystemError? {
        state.withLock { state in
            flush(&state)
            return state.failure
        }
    }

    private func flush(_ state: inout State) {
        guard state.failure == nil, !state.buffer.isEmpty else { return }
        do throws(SystemError) {
            try writeAll(output, state.buffer)
        } catch {
            state.failure = error
        }
        state.buffer.removeAll(keepingCapacity: true)
    }

    // MARK: Messages

    /// An error. Shown even when quiet.
    func error(_ message: String) { say("error", message) }

    /// A warning.
    func warning(_ message: String) { if !isQuiet { say("warning", message) } }

    /// Advice that belongs to the message before.
    func hint(_ message: String) { if !isQuiet { say("hint", message) } }

    /// An error with the advice for its code.
    func error(_ error: ProtectionError) {
        self.error(error.description)
        for advice in Hints.advice(for: error) { hint(advice) }
    }

    /// Shows one line in place of the last one, on a terminal. An empty one erases it.
    func progress(_ text: String) {
        guard !isQuiet else { return }
        state.withLock { state in
            guard !text.isEmpty || state.progressIsShown else { return }
            state.progressIsShown = !text.isEmpty
            writeQuietly(errors, Array("\r\u{1B}[K\(text)".utf8))
        }
    }

    private func say(_ kind: String, _ message: String) {
        state.withLock { state in
            flush(&state)
            let erase = state.progressIsShown ? "\r\u{1B}[K" : ""
            state.progressIsShown = false
            writeQuietly(errors, Array("\(erase)candado: \(kind): \(message)\n".utf8))
        }
    }

    private func writeQuietly(_ descriptor: Int32, _ bytes: [UInt8]) {
        // When stderr itself fails there is nobody left to tell.
        try? writeAll(descriptor, bytes)
    }

    private func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) throws(SystemError) {
        var position = 0
        while position < bytes.count {
            let written = try writeOnce(descriptor, bytes, from: position)
            position += written
        }
    }

    private func writeOnce(_ descriptor: Int32, _ bytes: [UInt8], from position: Int) throws(SystemError) -> Int {
        var outcome: Result<Int, SystemError> = .success(0)
        bytes.withUnsafeBytes { buffer in
            let rest = UnsafeRawBufferPointer(rebasing: buffer[position...])
            outcome = Result { () throws(SystemError) -> Int in try system.write(descriptor, rest) }
        }
        return try outcome.get()
    }
}
