import LinuxSystem
import ProtectionModel

/// The locks between handles of one container, in one process or several: open-file-description locks on bytes at 2^62
/// and above, where no application locks and no content lies.
enum ContainerLock {
    case shared
    case exclusive

    private static let base: Int64 = 1 << 62
    /// Held shared by every handle that may write, as long as it is open.
    static let presenceByte = base
    /// Held exclusively for the time of one change, and shared by a reader that met something unsettled.
    static let changeByte = base + 1

    /// Runs `body` under the lock.
    ///
    /// Throws `unsupported` where such locks do not work: a second writer could not be kept out there.
    func holding<Result>(
        _ descriptor: Int32, _ system: any SystemCalls, file: inout ContainerFile,
        _ body: (inout ContainerFile) throws -> Result
    ) throws -> Result {
        do {
            _ = try system.lock(
                descriptor, self == .shared ? .shared : .exclusive, start: Self.changeByte, count: 1, wait: true)
        } catch {
            throw ProtectionError(.unsupported, "file locks do not work on this file system", cause: error)
        }
        let outcome = Swift.Result { try body(&file) }
        _ = try system.lock(descriptor, .none, start: Self.changeByte, count: 1, wait: false)
        return try outcome.get()
    }
}
