import KeychainModel

/// One version of a row in memory, and the states of the tables that have it: from `born` until before `died`.
final class MemoryRow {
    let row: ItemRow
    let born: UInt64
    var died = UInt64.max

    init(_ row: ItemRow, born: UInt64) {
        self.row = row
        self.born = born
    }
}

/// The rows of one class, with an index for each way of looking up. Used under the lock of its tables.
final class MemoryTable {
    private struct DigestKey: Hashable {
        let attribute: String
        let digest: LookupDigest

        /// A digest is as good as random.
        func hash(into hasher: inout Hasher) { hasher.combine(digest.low) }
    }

    private var rows: [Int64: MemoryRow] = [:]
    private var all = NumberList()
    private var byPrimaryKey: [LookupDigest: Int64] = [:]
    private var byIdentifier: [LookupDigest: Int64] = [:]
    private var byDigest: [DigestKey: NumberList] = [:]
    private var byGroup: [String: NumberList] = [:]
    /// Versions that only readers of older states see.
    private var past: [MemoryRow] = []

    /// 16 random bytes, which are as good as a digest.
    private static func identity(_ identifier: [UInt8]) -> LookupDigest {
        identifier.withUnsafeBytes { bytes in
            guard bytes.count >= 16 else { return LookupDigest(high: 0, low: 0) }
            return LookupDigest(
                high: bytes.loadUnaligned(as: UInt64.self), low: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
            )
        }
    }

    func row(numbered number: Int64) -> MemoryRow? { rows[number] }
    func number(ofPrimaryKey primaryKey: LookupDigest) -> Int64? { byPrimaryKey[primaryKey] }

    func link(_ stored: MemoryRow) {
        let row = stored.row
        rows[row.number] = stored
        all.insert(row.number)
        byPrimaryKey[row.primaryKey] = row.number
        byIdentifier[Self.identity(row.header.identifier)] = row.number
        byGroup[row.header.accessGroup, default: NumberList()].insert(row.number)
        for (attribute, digest) in row.digests {
            byDigest[DigestKey(attribute: attribute, digest: digest), default: NumberList()].insert(row.number)
        }
    }

    func unlink(_ stored: MemoryRow) {
        let row = stored.row
        let group = row.header.accessGroup
        rows[row.number] = nil
        byPrimaryKey[row.primaryKey] = nil
        byIdentifier[Self.identity(row.header.identifier)] = nil
        all.remove(row.number) { rows[$0] != nil }
        byGroup[group]?.remove(row.number) { rows[$0]?.row.header.accessGroup == group }
        if byGroup[group]?.isEmpty == true { byGroup[group] = nil }
        for (attribute, digest) in row.digests {
            let key = DigestKey(attribute: attribute, digest: digest)
            byDigest[key]?.remove(row.number) { rows[$0]?.row.digests[attribute] == digest }
            if byDigest[key]?.isEmpty == true { byDigest[key] = nil }
        }
    }

    /// Keeps a version for the readers of older states.
    func bury(_ stored: MemoryRow) { past.append(stored) }

    /// Lets versions go that nobody sees who looks at a state of at least `oldest`.
    func forget(before oldest: UInt64) {
        if !past.isEmpty { past.removeAll { $0.died <= oldest } }
    }

    /// The first `count` rows of a state with numbers above `number`, in their order.
    func rows(_ filter: RowFilter, after number: Int64, in version: UInt64, count: Int) -> [ItemRow] {
        var found: [ItemRow] = []
        candidates(filter) { candidates in
            var place = candidates.firstIndex(atLeast: number + 1)
            while place < candidates.numbers.count, found.count < count {
                if let stored = rows[candidates.numbers[place]], stored.born <= version, filter.matches(stored.row) {
                    found.append(stored.row)
                }
                place += 1
            }
        }
        let older = past.filter {
            $0.born <= version && version < $0.died && $0.row.number > number && filter.matches($0.row)
        }
        guard !older.isEmpty else { return found }
        return Array((found + older.map(\.row)).sorted { $0.number < $1.number }.prefix(count))
    }

    /// Shows the shortest list that has all rows that may match.
    private func candidates(_ filter: RowFilter, _ body: (NumberList) -> Void) {
        if filter.primaryKey != nil || filter.identifier != nil {
            var one = NumberList()
            let number =
                if let primaryKey = filter.primaryKey { byPrimaryKey[primaryKey] } else {
                    filter.identifier.flatMap { byIdentifier[Self.identity($0)] }
                }
            if let number { one.insert(number) }
            return body(one)
        }
        var best: NumberList?
        for (attribute, digest) in filter.digests {
            let list = byDigest[DigestKey(attribute: attribute, digest: digest)] ?? NumberList()
            if list.numbers.count < best?.numbers.count ?? .max { best = list }
        }
        if best == nil, let groups = filter.accessGroups, groups.count == 1 {
            best = byGroup[groups[0]] ?? NumberList()
        }
        body(best ?? all)
    }
}
