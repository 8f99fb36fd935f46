import ProtectionModel
import Synchronization

/// Class keys for replacing one file: where the service is far away, the new file's key comes along when the old file's
/// record is opened. Both are held until this goes, and then given back together. Thread-safe.
final class ReplacementKeys: ForwardingClassKeys {
    private struct State {
        var old: (any FileKeyLease)?
        var new: NewFileKey?
    }

    let base: any ClassKeyService
    private let requested: ProtectionClass?
    private let state = Mutex(State())

    /// `requested` is the class of the new file; nil is the old file's.
    init(_ base: any ClassKeyService, class requested: ProtectionClass?) {
        self.base = base
        self.requested = requested
    }

    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        guard prefersBatches, state.withLock({ $0.old == nil && $0.new == nil }) else {
            return try base.unwrap(record)
        }
        let (old, new) = base.unwrap(record, makingFileKeyFor: requested ?? record.protectionClass)
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
        return try base.makeFileKey(for: protectionClass, flags: flags)
    }
}
