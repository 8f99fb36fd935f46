import ProtectionModel

/// Class keys that are had no more once a task is cancelled, so that work which asks for a key again and again ends in
/// the middle of a file, as it would at a lock. Thread-safe.
final class CancellableKeys: ForwardingClassKeys {
    let base: any ClassKeyService
    private let cancellation: Cancellation

    init(_ base: any ClassKeyService, _ cancellation: Cancellation) {
        self.base = base
        self.cancellation = cancellation
    }

    func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        try cancellation.check()
        return lent(try base.makeFileKey(for: protectionClass, flags: flags))
    }

    func makeFileKeys(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags, count: Int
    ) throws(ProtectionError) -> [NewFileKey] {
        try cancellation.check()
        return try base.makeFileKeys(for: protectionClass, flags: flags, count: count).map(lent)
    }

    func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        try cancellation.check()
        return Lease(try base.unwrap(record), cancellation)
    }

    func unwrap(_ records: [KeyRecord]) -> [Result<any FileKeyLease, ProtectionError>] {
        base.unwrap(records).map { $0.map { Lease($0, cancellation) } }
    }

    func unwrap(
        _ record: KeyRecord, makingFileKeyFor protectionClass: ProtectionClass
    ) -> (old: Result<any FileKeyLease, ProtectionError>, new: Result<NewFileKey, ProtectionError>) {
        let (old, new) = base.unwrap(record, makingFileKeyFor: protectionClass)
        return (old.map { Lease($0, cancellation) }, new.map(lent))
    }

    func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        try cancellation.check()
        return try base.rewrap(record, to: protectionClass, flags: flags)
    }

    private func lent(_ key: NewFileKey) -> NewFileKey {
        NewFileKey(record: key.record, lease: Lease(key.lease, cancellation))
    }

    private final class Lease: FileKeyLease {
        private let base: any FileKeyLease
        private let cancellation: Cancellation

        init(_ base: any FileKeyLease, _ cancellation: Cancellation) {
            self.base = base
            self.cancellation = cancellation
        }

        var protectionClass: ProtectionClass { base.protectionClass }
        var lendsForOperations: Bool { base.lendsForOperations }

        func withKey<Value>(_ body: (borrowing FileKey) throws -> Value) throws -> Value {
            try cancellation.check()
            return try base.withKey(body)
        }

        func check() throws {
            try cancellation.check()
            try base.check()
        }
    }
}
