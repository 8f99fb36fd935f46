import KeychainModel

/// A row of which some parts are opened.
struct OpenedRow {
    let row: ItemRow
    /// Nil when they were not opened.
    var attributes: ItemDictionary?
    var secret: ItemSecret?
}

/// What came of opening a row.
enum Opening {
    case opened(OpenedRow)
    /// Opened, and not what is wanted.
    case noMatch
    /// It does not decode. It counts as no match.
    case undecodable
    /// Its key was destroyed with the passcode. It counts as absent, and stays until somebody deletes or replaces it.
    case gone
}

extension KeychainStore {
    /// Opens what is needed of a row that the tables found. Throws `locked`.
    ///
    /// Attributes are opened when they are wanted or decide; otherwise the secret alone. One of the two is always opened, so
    /// that a locked item is never taken for one that can be read.
    func open(
        _ row: ItemRow, _ search: RowSearch, attributes wantsAttributes: Bool, secret wantsSecret: Bool
    ) throws(KeychainError) -> Opening {
        do throws(KeychainError) {
            var opened = OpenedRow(row: row)
            if wantsAttributes || !search.isDecided || !wantsSecret {
                let attributes = try protection.attributes(of: row)
                guard search.matches(attributes) else { return .noMatch }
                opened.attributes = attributes
            }
            if wantsSecret {
                opened.secret = try protection.secret(of: row)
                if opened.secret == nil, opened.attributes == nil {
                    opened.attributes = try protection.attributes(of: row)
                }
            }
            return .opened(opened)
        } catch {
            guard error.code == .undecodable else { throw error }
            return row.header.accessibility == .whenPasscodeSetThisDeviceOnly ? .gone : .undecodable
        }
    }

    /// Opens a row that a writer found. What does not decode is retired; one that could be mended may be what is wanted.
    func open(
        _ row: ItemRow, _ search: RowSearch, attributes: Bool, secret: Bool, _ writer: any ItemTableWriter
    ) throws(KeychainError) -> Opening {
        let opening = try open(row, search, attributes: attributes, secret: secret)
        guard case .undecodable = opening else { return opening }
        guard let mended = try retire(row, writer), search.filter.matches(mended) else { return opening }
        return try open(mended, search, attributes: attributes, secret: secret)
    }

    /// Sets a row aside that does not decode; or gives it its digests back when nothing else is wrong with it, and returns
    /// it.
    @discardableResult
    func retire(_ row: ItemRow, _ writer: any ItemTableWriter) throws(KeychainError) -> ItemRow? {
        if let mended = try protection.mended(row) {
            do throws(KeychainError) {
                try writer.replace(mended)
                return mended
            } catch {
                // Another row has its names by now.
                guard error.code == .duplicateItem else { throw error }
            }
        }
        try writer.setAside(row)
        return nil
    }

    /// True when a row can never be opened again. A locked row may well be whole.
    func isLost(_ row: ItemRow) throws(KeychainError) -> Bool {
        do throws(KeychainError) {
            _ = try protection.attributes(of: row)
            _ = try protection.secret(of: row)
            return false
        } catch {
            switch error.code {
            case .undecodable: return true
            case .locked: return false
            default: throw error
            }
        }
    }

    /// The result that a row is.
    func result(_ opened: OpenedRow, parts: RequestedParts) throws(KeychainError) -> ItemResult {
        let header = opened.row.header
        var result = ItemResult(
            itemClass: header.itemClass, reference: try reference(header),
            attributes: parts.contains(.attributes)
                ? opened.attributes.map { Self.visible($0, header, withClass: parts.contains(.reference)) } : nil,
            secret: parts.contains(.secret) ? opened.secret : nil, accessGroup: header.accessGroup,
            accessibility: header.accessibility)
        result.nameDigest = (opened.row.primaryKey.high, opened.row.primaryKey.low)
        return result
    }

    /// An item's persistent reference.
    func reference(_ header: ItemHeader) throws(KeychainError) -> PersistentReference {
        guard let reference = PersistentReference(header.itemClass, identifier: header.identifier) else {
            throw KeychainError(.undecodable, "the item has an identifier of \(header.identifier.count) bytes")
        }
        return reference
    }

    /// All attributes as an answer has them (apple-semantics 3.8): those that are stored, and those of the header.
    private static func visible(_ stored: ItemDictionary, _ header: ItemHeader, withClass: Bool) -> ItemDictionary {
        var attributes = stored
        attributes["agrp"] = .text(header.accessGroup)
        attributes["pdmn"] = .text(header.accessibility.rawValue)
        attributes["sync"] = .number(header.isSynchronizable ? 1 : 0)
        attributes["accc"] = .accessControl(AccessControl(header.accessibility))
        if withClass { attributes["class"] = .text(header.itemClass.rawValue) }
        return attributes
    }
}
