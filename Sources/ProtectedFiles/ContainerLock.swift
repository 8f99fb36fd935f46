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

    /// Says that this handle may write, as long as its descriptor is open. Throws `unsupported` where locks do not work.
    static func announceWriter(_ descriptor: Int32, _ system: any SystemCalls) throws {
        do {
            _ = try system.lock(descriptor, .shared, start: presenceByte, count: 1, wait: true)
        } catch {
            throw ProtectionError(
                .unsupported, "file locks do not work on this file system", cause: error, reason: .locks)
        }
    }

    /// Whether another handle has the file open for writing.
    static func somebodyWrites(_ descriptor: Int32, _ system: any SystemCalls) throws -> Bool {
        do throws(SystemError) {
            return try system.isLocked(descriptor, start: presenceByte, count: 1)
        } catch let error where ErrorNumber.withoutLocks.contains(error.errorNumber) {
            // Nobody could have opened it for writing here.
            return false
        }
    }

    /// Runs `body` under the lock.
    ///
    /// Throws `unsupported` where such locks do not work: a second writer could not be kept out there. A reader needs none
    /// there, since nobody writes.
    func holding<Result>(
        _ descriptor: Int32, _ system: any SystemCalls, file: inout ContainerFile,
        _ body: (inout ContainerFile) throws -> Result
    ) throws -> Result {
        do throws(SystemError) {
            _ = try system.lock(
                descriptor, self == .shared ? .shared : .exclusive, start: Self.changeByte, count: 1, wait: true)
        } catch {
            if self == .shared, ErrorNumber.withoutLocks.contains(error.errorNumber) { return try body(&file) }
            throw ProtectionError(
                .unsupported, "file locks do not work on this file system", cause: error, reason: .locks)
        }
        file.holdsLock = true
        let outcome = Swift.Result { try body(&file) }
        file.holdsLock = false
        _ = try system.lock(descriptor, .none, start: Self.changeByte, count: 1, wait: false)
        return try outcome.get()
    }
}
