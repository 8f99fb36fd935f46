import KeychainModel

/// One call each. Every one throws `locked` for what cannot be opened or sealed in the present lock state,
/// `missingEntitlement` for an access group that this process does not hold, `malformed`, `agentNotReachable`,
/// `notAvailable`, `busy`, `cancelled`.
///
/// What names no access group means the program's own, the first that it holds; items of other groups are never found,
/// changed or deleted by a call that does not name them.
extension Keychain {
    /// Stores a new password, and returns a name that stays its own until it is deleted.
    ///
    /// The accessibility has no default: it is the decision of whoever stores a secret. Throws `duplicateItem` when it is there already:
    /// ``update(_:secret:accessible:)`` changes it, ``addOrUpdate(_:secret:accessible:)`` does what is needed.
    /// `notAvailable` for `whenPasscodeSetThisDeviceOnly` without a passcode.
    @discardableResult
    public func add(
        _ password: some Password, secret: some SecretSource, accessible: Accessibility
    ) throws(KeychainError) -> PersistentReference {
        var item = password.query
        item.merge(password.details) { $1 }
        item["pdmn"] = .text(accessible.rawValue)
        item["v_Data"] = .secret(try secret.itemSecret())
        item["r_PersistentRef"] = .boolean(true)
        guard let result = try ask(.add(item)).results.first else {
            throw KeychainError(.inputOutput, "the keychain did not say under which name the password was stored")
        }
        return result.reference
    }

    /// The secret of a password, in secret memory. Nil when there is no such password; never because it is locked.
    public func get(_ password: some Password) throws(KeychainError) -> ItemSecret? {
        var query = try ownGroup(password.query)
        query["r_Data"] = .boolean(true)
        return try found(query)?.secret ?? nil
    }

    /// The same as a text in ordinary memory. Throws `undecodable` for a secret that is not UTF-8.
    public func text(_ password: some Password) throws(KeychainError) -> String? {
        guard let secret = try get(password) else { return nil }
        return try secret.exposedText()
    }

    /// The same as bytes in ordinary memory.
    public func bytes(_ password: some Password) throws(KeychainError) -> [UInt8]? { try get(password)?.exposedBytes }

    /// Gives a password another secret, and another accessibility when one is given; label and comment become those of `password` where it has some.
    ///
    /// Throws `itemNotFound` when there is none.
    public func update(
        _ password: some Password, secret: some SecretSource, accessible: Accessibility? = nil
    ) throws(KeychainError) {
        var changes = password.details
        changes["v_Data"] = .secret(try secret.itemSecret())
        if let accessible { changes["pdmn"] = .text(accessible.rawValue) }
        _ = try ask(.update(try ownGroup(password.query), to: changes))
    }

    /// Stores a password, whether it is there already or not. Its accessibility is `accessible` afterwards.
    ///
    /// What is there and locked is left as it is, and `locked` thrown.
    public func addOrUpdate(
        _ password: some Password, secret: some SecretSource, accessible: Accessibility
    ) throws(KeychainError) {
        // Another process may take the name, or give it up, between the two calls.
        for _ in 0..<8 {
            if try replace(password, secret, accessible) { return }
            if try store(password, secret, accessible) { return }
        }
        throw KeychainError(.busy, "others keep adding and deleting the same password")
    }

    /// False when there is none.
    private func replace(
        _ password: some Password, _ secret: some SecretSource, _ accessible: Accessibility
    ) throws(KeychainError) -> Bool {
        do throws(KeychainError) {
            try update(password, secret: secret, accessible: accessible)
            return true
        } catch {
            guard error.code == .itemNotFound else { throw error }
            return false
        }
    }

    /// False when there is one already.
    func store(
        _ password: some Password, _ secret: some SecretSource, _ accessible: Accessibility
    ) throws(KeychainError) -> Bool {
        do throws(KeychainError) {
            try add(password, secret: secret, accessible: accessible)
            return true
        } catch {
            guard error.code == .duplicateItem else { throw error }
            return false
        }
    }

    /// Deletes a password, also one that is locked. False when there was none.
    @discardableResult
    public func delete(_ password: some Password) throws(KeychainError) -> Bool {
        try remove(try ownGroup(password.query)) > 0
    }

    /// Deletes everything of a service in one access group, the program's own when none is named; synchronizable or not,
    /// locked or not: what a logout needs. Returns how many there were.
    @discardableResult
    public func deleteAll(service: String, accessGroup: String? = nil) throws(KeychainError) -> Int {
        try deleteAll(
            matching: GenericPassword.Filter(service: service, accessGroup: accessGroup), GenericPassword.self)
    }

    /// Deletes all passwords for a server in one access group, the program's own when none is named.
    @discardableResult
    public func deleteAll(server: String, accessGroup: String? = nil) throws(KeychainError) -> Int {
        try deleteAll(
            matching: InternetPassword.Filter(server: server, accessGroup: accessGroup), InternetPassword.self)
    }

    private func deleteAll<P: Password>(matching filter: P.Filter, _ type: P.Type) throws(KeychainError) -> Int {
        var query = filter.spansAccessGroups ? filter.attributes : try ownGroup(filter.attributes)
        query["class"] = .text(P.itemClass.rawValue)
        return try remove(query)
    }

    /// The passwords that match, without their secrets, in the order in which they were stored.
    ///
    /// Throws `locked` when one of them cannot be opened now: a list that left it out would say that it is not there.
    public func items<P: Password>(
        of type: P.Type = P.self, matching filter: P.Filter
    ) throws(KeychainError) -> [StoredPassword<P>] {
        var query = filter.spansAccessGroups ? filter.attributes : try ownGroup(filter.attributes)
        query["class"] = .text(P.itemClass.rawValue)
        query["m_Limit"] = .text("m_LimitAll")
        query["r_Attributes"] = .boolean(true)
        query["r_PersistentRef"] = .boolean(true)
        do throws(KeychainError) {
            return try ask(.find(query)).results.map { StoredPassword($0) }
        } catch {
            guard error.code == .itemNotFound else { throw error }
            return []
        }
    }

    // MARK: By reference

    /// The secret of the item that ``add(_:secret:accessible:)`` named so. Nil when it was deleted.
    public func get(_ reference: PersistentReference) throws(KeychainError) -> ItemSecret? {
        try found(["v_PersistentRef": .data(reference.bytes), "r_Data": .boolean(true)])?.secret ?? nil
    }

    /// Gives it another secret. Throws `itemNotFound` when it was deleted.
    public func update(_ reference: PersistentReference, secret: some SecretSource) throws(KeychainError) {
        _ = try ask(
            .update(
                ["v_PersistentRef": .data(reference.bytes)], to: ["v_Data": .secret(try secret.itemSecret())]))
    }

    /// Deletes it. False when it was deleted already.
    @discardableResult
    public func delete(_ reference: PersistentReference) throws(KeychainError) -> Bool {
        try remove(["v_PersistentRef": .data(reference.bytes)]) > 0
    }

    // MARK: Steps

    /// What names no access group means the first that this process holds, where new items go: an item of the same name in
    /// a group that is shared with others is another one.
    private func ownGroup(_ query: ItemDictionary) throws(KeychainError) -> ItemDictionary {
        // Asked each time: the entitlements of a process may change while it runs.
        guard query["agrp"] == nil, let group = try caller().accessGroups.first else { return query }
        var query = query
        query["agrp"] = .text(group)
        return query
    }

    /// Nil where nothing matches.
    func found(_ query: ItemDictionary) throws(KeychainError) -> ItemResult? {
        do throws(KeychainError) {
            return try ask(.find(query)).results.first
        } catch {
            guard error.code == .itemNotFound else { throw error }
            return nil
        }
    }

    private func remove(_ query: ItemDictionary) throws(KeychainError) -> Int {
        do throws(KeychainError) {
            return try ask(.delete(query)).answer.count
        } catch {
            guard error.code == .itemNotFound else { throw error }
            return 0
        }
    }
}
