import CCandado
import FileProtection
import Glibc
import ProtectionModel

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

    /// Runs `body` with the open file of a handle.
    @inline(__always)
    static func withFile(
        _ handle: candado_file, _ body: (ProtectedFile) throws(CallFailure) -> Int64
    ) throws(CallFailure) -> Int64 {
        // Straight from C's side: a lazy global is looked at by a call.
        let table: UnsafeMutableRawPointer
        if let known = candado_library_table() { table = known } else { table = try firstUse() }
        return try with(handle, in: Unmanaged<HandleTable<ProtectedFile>>.fromOpaque(table), body)
    }

    /// Runs `body` with the subscription of a handle.
    static func withSubscription(
        _ handle: candado_events, _ body: (EventQueue) throws(CallFailure) -> Int64
    ) throws(CallFailure) -> Int64 {
        try check()
        return try with(handle, in: Unmanaged.passUnretained(subscriptions), body)
    }

    /// Nobody counts references: the table is never freed, and the object is counted as in use there.
    @inline(__always)
    private static func with<Object: AnyObject & Sendable>(
        _ handle: Int64, in table: Unmanaged<HandleTable<Object>>, _ body: (Object) throws(CallFailure) -> Int64
    ) throws(CallFailure) -> Int64 {
        guard let (object, use) = table._withUnsafeGuaranteedRef({ $0.use(handle) }) else { throw .closedHandle }
        defer { table._withUnsafeGuaranteedRef { $0.end(use) } }
        let result: Result<Int64, CallFailure> = object._withUnsafeGuaranteedRef { object in
            do throws(CallFailure) { return .success(try body(object)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Protected files, seen through the keys of the home in use. Connects where that has to be.
    static func protection() throws(CallFailure) -> FileProtection {
        try check()
        return try protecting { () throws(ProtectionError) in try home.protection() }
    }
}
