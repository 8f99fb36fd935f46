import KeychainModel

extension KeychainStore {
    /// The most bytes of sealed rows that are kept until the tables' state is let go: nearly every answer is smaller.
    private static var keptSize: Int { 4 << 20 }

    func find(
        _ dictionary: ItemDictionary, _ caller: Caller, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        let query = try ItemQuery(dictionary, .find, by: caller)
        let search = try RowSearch(query, caller, protection)
        guard !search.isEmpty else { throw Self.notFound }
        var answer = FindAnswer(query.shape)
        try find(search, &answer, each)
        if try retire(answer.undecodable) > 0, answer.count == 0 {
            // What was mended may be what is wanted.
            answer = FindAnswer(query.shape)
            try find(search, &answer, each)
        }
        guard answer.count > 0 else { throw Self.notFound }
        return KeychainAnswer(count: answer.count)
    }

    /// What became of a look for items.
    private struct FindAnswer {
        let shape: ResultShape
        var count = 0
        var undecodable: [ItemRow] = []
        var isComplete: Bool { count >= shape.limit }

        init(_ shape: ResultShape) { self.shape = shape }
    }

    /// Results are handed over after the tables' state is let go, because whoever takes them may be slow: of one item that is
    /// wanted the result is kept, of many their sealed rows. Only an answer that is larger is handed over meanwhile.
    private func find(
        _ search: RowSearch, _ answer: inout FindAnswer, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        var kept: [ItemRow] = []
        var size = 0
        var single: ItemResult?
        try tables.read { (reader) throws(KeychainError) in
            try reader.rows(search.filter) { (row) throws(KeychainError) in
                if answer.shape.limit == 1 {
                    try take(row, search, &answer) { (result) throws(KeychainError) in single = result }
                } else if size >= Self.keptSize {
                    try take(row, search, &answer, each)
                } else {
                    kept.append(row)
                    size += row.size
                    if size >= Self.keptSize { try take(&kept, search, &answer, each) }
                }
                return !answer.isComplete
            }
        }
        try take(&kept, search, &answer, each)
        if let single { try each(single) }
    }

    private func take(
        _ rows: inout [ItemRow], _ search: RowSearch, _ answer: inout FindAnswer,
        _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        for row in rows where !answer.isComplete { try take(row, search, &answer, each) }
        rows = []
    }

    private func take(
        _ row: ItemRow, _ search: RowSearch, _ answer: inout FindAnswer,
        _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        let parts = answer.shape.parts
        switch try open(row, search, attributes: parts.contains(.attributes), secret: parts.contains(.secret)) {
        case .opened(let opened):
            answer.count += 1
            if !parts.isEmpty { try each(try result(opened, parts: parts)) }
        case .undecodable: answer.undecodable.append(row)
        case .noMatch, .gone: break
        }
    }

    static var notFound: KeychainError { KeychainError(.itemNotFound, "no item matches the query") }

    func list(
        _ dictionary: ItemDictionary, _ caller: Caller, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) -> KeychainAnswer {
        let queries = try Self.listQueries(dictionary, caller)
        var searches: [(search: RowSearch, limit: Int)] = []
        for query in queries { searches.append((try RowSearch(query, caller, protection), query.shape.limit)) }
        var answer = ListAnswer()
        do throws(KeychainError) {
            try tables.read { (reader) throws(KeychainError) in try list(searches, reader, &answer, each) }
        } catch {
            // Where digests have to be made anew first, headers can be shown all the same.
            guard error.code == .locked, !answer.hasBegun, searches.allSatisfy({ $0.search.needsNoDigest }) else {
                throw error
            }
            answer.areAllLocked = true
            try tables.readHeaders { (reader) throws(KeychainError) in try list(searches, reader, &answer, each) }
        }
        try hand(over: &answer, each)
        try retire(answer.undecodable)
        return KeychainAnswer(count: answer.count)
    }

    private struct ListAnswer {
        var count = 0
        var hasBegun = false
        /// True where nothing is opened.
        var areAllLocked = false
        var kept: [(row: ItemRow, search: RowSearch, limit: Int)] = []
        var size = 0
        var undecodable: [ItemRow] = []
    }

    private func list(
        _ searches: [(search: RowSearch, limit: Int)], _ reader: any ItemTableReader, _ answer: inout ListAnswer,
        _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        for (search, limit) in searches where !search.isEmpty && answer.count < limit {
            try reader.rows(search.filter) { (row) throws(KeychainError) in
                answer.hasBegun = true
                answer.kept.append((row, search, limit))
                answer.size += row.size
                if answer.size >= Self.keptSize { try hand(over: &answer, each) }
                return answer.count < limit
            }
        }
    }

    private func hand(
        over answer: inout ListAnswer, _ each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        for (row, search, limit) in answer.kept where answer.count < limit {
            switch answer.areAllLocked ? .opened(OpenedRow(row: row)) : try openIfPossible(row, search) {
            case .opened(let opened):
                answer.count += 1
                try each(try listed(opened))
            case .undecodable: answer.undecodable.append(row)
            case .noMatch, .gone: break
            }
        }
        answer.kept = []
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

    /// Retires rows that a reading call has met, without waiting for other processes. When that cannot be written now, they
    /// stay where they are and the next call meets them again. Returns how many were mended.
    ///
    /// Throws `damagedDatabase` when the database is so damaged that it was moved away: then what was found is no answer.
    @discardableResult
    private func retire(_ rows: [ItemRow]) throws(KeychainError) -> Int {
        guard !rows.isEmpty else { return 0 }
        do throws(KeychainError) {
            let (lost, mended) = try tables.writeWithoutWaiting { (writer) throws(KeychainError) in
                var lost = 0, mended = 0
                for row in rows { try retireIfLost(row, writer, &lost, &mended) }
                return (lost, mended)
            }
            if lost > 0 { notices.tell(.itemsSetAside(lost)) }
            if mended > 0 { notices.tell(.itemsMended(mended)) }
            return mended
        } catch {
            guard error.code != .damagedDatabase else { throw error }
            notices.tell(.notWritten(error))
            return 0
        }
    }

    /// It may have been replaced since it was read.
    private func retireIfLost(
        _ row: ItemRow, _ writer: any ItemTableWriter, _ lost: inout Int, _ mended: inout Int
    ) throws(KeychainError) {
        var filter = RowFilter(row.header.itemClass)
        filter.identifier = row.header.identifier
        filter.isTombstone = nil
        var present: [ItemRow] = []
        try writer.rows(filter) { (row) throws(KeychainError) in
            present.append(row)
            return true
        }
        for row in present where try isLost(row) {
            if try retire(row, writer) != nil { mended += 1 } else { lost += 1 }
        }
    }
}

extension ItemRow {
    /// About how many bytes it takes.
    fileprivate var size: Int {
        switch content {
        case .sealed(let metadata, let secret): 512 + metadata.count + (secret?.count ?? 0)
        // It lies in memory anyway.
        case .open: 512
        }
    }
}
