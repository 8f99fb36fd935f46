import CCandado
import FileProtection
import Glibc
import ProtectionModel
import Synchronization

/// What the functions of the C library keep between calls. Thread-safe.
enum Library {
    static let files = HandleTable<ProtectedFile>(kind: 0)
    static let subscriptions = HandleTable<EventQueue>(kind: 1)
    static let home = HomeInUse()

    /// Throws in a forked child. Comes before everything else that a function does with the above.
    @inline(__always)
    static func check() throws(CallFailure) {
        guard candado_library_table() == nil else { return }
        _ = try firstUse()
    }

    /// Gives the table of open files.
    @inline(never)
    private static func firstUse() throws(CallFailure) -> UnsafeMutableRawPointer {
        let number = candado_library_first_use()
        guard number == 0 else {
            throw number == ESTALE ? .forked : .system(number, "no memory for the mark that tells a forked child")
        }
        let table = Unmanaged.passUnretained(files).toOpaque()
        candado_library_set_table(table)
        return table
    }

    /// The open file of a handle.
    @inline(__always)
    static func file(_ handle: candado_file) throws(CallFailure) -> ProtectedFile {
        // Straight from C's side: a lazy global is looked at by a call.
        let table: UnsafeMutableRawPointer
        if let known = candado_library_table() { table = known } else { table = try firstUse() }
        let file = Unmanaged<HandleTable<ProtectedFile>>.fromOpaque(table)._withUnsafeGuaranteedRef {
            $0.object(handle)
        }
        guard let file else { throw .closedHandle }
        return file
    }

    /// The subscription of a handle.
    static func subscription(_ handle: candado_events) throws(CallFailure) -> EventQueue {
        try check()
        guard let subscription = subscriptions.object(handle) else { throw .closedHandle }
        return subscription
    }

    /// Protected files, seen through the keys of the home in use. Connects where that has to be.
    static func protection() throws(CallFailure) -> FileProtection {
        try check()
        return try protecting { () throws(ProtectionError) in try home.protection() }
    }
}

/// The home whose keys are used, and the connection to its agent once there is one. Thread-safe.
final class HomeInUse: Sendable {
    private struct State {
        /// Nil for the one that the environment names.
        var home: KeybagHome?
        var protection: FileProtection?
    }

    private let state = Mutex(State())

    /// From now on; nil for the one that the environment names.
    func use(_ home: KeybagHome?) { state.withLock { $0 = State(home: home, protection: nil) } }

    /// For tests, which bring keys of their own.
    func use(_ protection: FileProtection) {
        state.withLock { $0 = State(home: protection.home, protection: protection) }
    }

    /// Throws like `FileProtection.connect`; then the next call tries again.
    func protection() throws(ProtectionError) -> FileProtection {
        try state.withLock { (state) throws(ProtectionError) in
            if let protection = state.protection { return protection }
            // Not the optional's autoclosure, which cannot throw this type.
            let home: KeybagHome
            if let named = state.home { home = named } else { home = try KeybagHome.ofThisProcess() }
            let protection = try FileProtection.connect(home)
            state.protection = protection
            return protection
        }
    }
}
