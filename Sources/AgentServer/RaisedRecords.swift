import ProtectionModel

/// The records whose files were raised to class A last. Whoever read one before that may open it afterwards: it opens the
/// key of a file of class A, which a lock has to take back. Only hashes are kept: two that meet cost one client a lock.
struct RaisedRecords {
    /// The most that are remembered; the oldest goes first.
    static let limit = 65_536

    /// Where each hash stands among the last ones.
    private var places: [Int: Int] = [:]
    private var last: [Int] = []
    private var next = 0

    private static func hash(_ record: KeyRecord) -> Int { record.encoded.hashValue }

    func contains(_ record: KeyRecord) -> Bool { !places.isEmpty && places[Self.hash(record)] != nil }

    mutating func insert(_ record: KeyRecord) {
        let hash = Self.hash(record)
        if last.count < Self.limit {
            last.append(hash)
        } else {
            if places[last[next]] == next { places[last[next]] = nil }
            last[next] = hash
        }
        places[hash] = next
        next = (next + 1) % Self.limit
    }

    /// The file has this record again: wraps of one key under one class key are alike.
    mutating func remove(_ record: KeyRecord) { places[Self.hash(record)] = nil }
}
