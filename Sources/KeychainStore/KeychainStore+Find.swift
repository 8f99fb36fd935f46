import KeychainModel

extension KeychainStore {
    func find(
        _ dictionary: ItemDictionary, _ caller: Caller, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        let query = try ItemQuery(dictionary, .find, by: caller)
        let search = try RowSearch(query, caller, protection)
        guard !search.isEmpty else { throw Self.notFound }
        let parts = query.shape.parts
        var count = 0
        var undecodable: [ItemRow] = []
        try tables.read { (reader) throws(KeychainError) in
            try reader.rows(search.filter) { (row) throws(KeychainError) in
                switch try open(
                    row, search, attributes: parts.contains(.attributes), secret: parts.contains(.secret))
                {
                case .opened(let opened):
                    count += 1
                    if !parts.isEmpty { try each(try result(opened, parts: parts)) }
                case .undecodable: undecodable.append(row)
                case .noMatch, .gone: break
                }
                return count < query.shape.limit
            }
        }
        setAside(undecodable)
        guard count > 0 else { throw Self.notFound }
        return KeychainAnswer(count: count)
    }

    static var notFound: KeychainError { KeychainError(.itemNotFound, "no item matches the query") }

    func list(
        _ dictionary: ItemDictionary, _ caller: Caller, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        var count = 0
        var undecodable: [ItemRow] = []
        let queries = try Self.listQueries(dictionary, caller)
        var searches: [(RowSearch, limit: Int)] = []
        for query in queries { searches.append((try RowSearch(query, caller, protection), query.shape.limit)) }
        try tables.read { (reader) throws(KeychainError) in
            for (search, limit) in searches where !search.isEmpty && count < limit {
                try reader.rows(search.filter) { (row) throws(KeychainError) in
                    switch try openIfPossible(row, search) {
                    case .opened(let opened):
                        count += 1
                        try each(try listed(opened))
                    case .undecodable: undecodable.append(row)
                    case .noMatch, .gone: break
                    }
                    return count < limit
                }
            }
        }
        setAside(undecodable)
        return KeychainAnswer(count: count)
    }

    /// One query a class: all classes that have the attributes when none is named.
    private static func listQueries(
        _ dictionary: ItemDictionary, _ caller: Caller
    ) throws(KeychainError) -> [ItemQuery] {
        guard dictionary["class"] == nil, dictionary["v_PersistentRef"] == nil else {
            return [try ItemQuery(dictionary, .list, by: caller)]
        }
        var queries: [ItemQuery] = []
        var refusal: KeychainError?
        for itemClass in ItemClass.stored {
            do throws(KeychainError) {
                queries.append(try ItemQuery(dictionary, .list, by: caller, itemClass: itemClass))
            } catch {
                guard error.code == .noSuchAttribute else { throw error }
                refusal = error
            }
        }
        if queries.isEmpty, let refusal { throw refusal }
        return queries
    }

    /// Without attributes when it is locked and what is wanted does not depend on them.
    private func openIfPossible(_ row: ItemRow, _ search: RowSearch) throws(KeychainError) -> Opening {
        do throws(KeychainError) { return try open(row, search, attributes: true, secret: false) } catch {
            guard error.code == .locked, search.isDecided else { throw error }
            return .opened(OpenedRow(row: row))
        }
    }

    private func listed(_ opened: OpenedRow) throws(KeychainError) -> ItemResult {
        guard opened.attributes == nil else { return try result(opened, parts: .attributes) }
        let header = opened.row.header
        return ItemResult(
            itemClass: header.itemClass, reference: try reference(header), accessGroup: header.accessGroup,
            accessibility: header.accessibility, isLocked: true)
    }

    // MARK: What does not decode

    /// Sets rows aside that a reading call has met. When that cannot be written now, they stay where they are and count as
    /// absent again: the call that read has its answer.
    private func setAside(_ rows: [ItemRow]) {
        guard !rows.isEmpty else { return }
        do throws(KeychainError) {
            try tables.write { (writer) throws(KeychainError) in
                for row in rows { try setAsideIfLost(row, writer) }
            }
        } catch { return }
    }

    /// It may have been replaced since it was read.
    private func setAsideIfLost(_ row: ItemRow, _ writer: any ItemTableWriter) throws(KeychainError) {
        var filter = RowFilter(row.header.itemClass)
        filter.identifier = row.header.identifier
        filter.isTombstone = nil
        var present: [ItemRow] = []
        try writer.rows(filter) { (row) throws(KeychainError) in
            present.append(row)
            return true
        }
        for row in present where try isLost(row) { try writer.setAside(row) }
    }
}
