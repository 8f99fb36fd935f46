import ProtectionModel
import Synchronization

/// Class keys for replacing one file: where the service is far away, the new file's key comes along when the old file's
/// record is opened. Both are held until this goes, and then given back together. Thread-safe.
final class ReplacementKeys: ClassKeyService {
    private struct State {
        var old: (any FileKeyLease)?
        var new: NewFileKey?
    }

    private let service: any ClassKeyService
    private let requested: ProtectionClass?
    private let state = Mutex(State())

    /// `requested` is the class of the new file; nil is the old file's.
    init(_ service: any ClassKeyService, class requested: ProtectionClass?) {
        self.service = service
        self.requested = requested
    }

    var keybagIdentifier: KeybagIdentifier { service.keybagIdentifier }
    var defaultClass: ProtectionClass { service.defaultClass }
    var lockState: LockState { service.lockState }
    var prefersBatches: Bool { service.prefersBatches }
    func canUnwrap(_ protectionClass: ProtectionClass) -> Bool { service.canUnwrap(protectionClass) }
    func canWrap(_ protectionClass: ProtectionClass) -> Bool { service.canWrap(protectionClass) }
    func lockEvents() -> AsyncStream<LockEvent> { service.lockEvents() }

    func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        try service.rewrap(record, to: protectionClass, flags: flags)
    }

    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        guard prefersBatches, state.withLock({ $0.old == nil && $0.new == nil }) else {
            return try service.unwrap(record)
        }
        let (old, new) = service.unwrap(record, makingFileKeyFor: requested ?? record.protectionClass)
        // Why there is no new one is met again when it is asked for, if it is.
        state.withLock { $0 = State(old: try? old.get(), new: try? new.get()) }
        return try old.get()
    }

    /// The key that came along, unless it is of another class or a lock has taken it since; else a new one.
    func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        if flags.isEmpty, let key = state.withLock({ $0.new }), key.record.protectionClass == protectionClass,
            (try? key.lease.check()) != nil
        {
            return key
        }
        return try service.makeFileKey(for: protectionClass, flags: flags)
    }
}
