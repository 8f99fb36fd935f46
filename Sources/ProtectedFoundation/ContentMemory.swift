import FileProtection
import Foundation
import Synchronization

/// Memory in which content is put together, and which becomes a `Data` without a copy. When it does not, it is cleared.
final class ContentMemory: Sendable {
    private struct State: @unchecked Sendable {
        var bytes: UnsafeMutableRawBufferPointer
        var count = 0
    }

    /// Sees memory that was cleared, before it is given back: for tests.
    @TaskLocal static var cleared: (@Sendable (UnsafeMutableRawPointer, Int) -> Void)?

    private let state: Mutex<State>

    init(capacity: Int) {
        let memory = malloc(capacity)
        state = Mutex(State(bytes: UnsafeMutableRawBufferPointer(start: memory, count: memory == nil ? 0 : capacity)))
    }

    deinit {
        state.withLock { state in
            Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: state.bytes[..<state.count]))
            free(state.bytes.baseAddress)
        }
    }

    /// Throws `system(ENOMEM)` when there is no memory.
    func append(_ bytes: UnsafeRawBufferPointer) throws {
        try state.withLock { state in
            if state.bytes.baseAddress == nil || state.bytes.count - state.count < bytes.count {
                try Self.grow(&state, by: bytes.count)
            }
            UnsafeMutableRawBufferPointer(rebasing: state.bytes[state.count...]).copyMemory(from: bytes)
            state.count += bytes.count
        }
    }

    /// The file is longer than it was when it was looked at.
    private static func grow(_ state: inout State, by count: Int) throws {
        let capacity = max(2 * state.bytes.count, state.count + count)
        guard let memory = malloc(capacity) else {
            throw ProtectionError(.system(ErrorNumber.noMemory), "there is no memory for the content")
        }
        let bytes = UnsafeMutableRawBufferPointer(start: memory, count: capacity)
        let old = UnsafeMutableRawBufferPointer(rebasing: state.bytes[..<state.count])
        bytes.copyMemory(from: UnsafeRawBufferPointer(old))
        Wipe.clear(old)
        free(state.bytes.baseAddress)
        state.bytes = bytes
    }

    /// What there is, which is the caller's from then on. With `isCleared` it is cleared when the last one who has it lets
    /// it go.
    func take(isCleared: Bool = false) -> Data {
        state.withLock { state in
            guard let memory = state.bytes.baseAddress, state.count > 0 else { return Data() }
            let count = state.count
            // Gives back what the container had more than its content.
            let bytes = realloc(memory, count) ?? memory
            state = State(bytes: UnsafeMutableRawBufferPointer(start: nil, count: 0))
            guard isCleared else { return Data(bytesNoCopy: bytes, count: count, deallocator: .free) }
            let clearing = Data.Deallocator.custom { memory, count in
                Wipe.clear(UnsafeMutableRawBufferPointer(start: memory, count: count))
                Self.cleared?(memory, count)
                free(memory)
            }
            return Data(bytesNoCopy: bytes, count: count, deallocator: clearing)
        }
    }
}
