import AgentProtocol
import ProtectionModel

/// File keys: made and opened by the agent, lent through its slabs.
extension AgentClient {
    /// True: a call costs a round trip, however many keys it is about.
    public var prefersBatches: Bool { true }

    /// Makes a random file key and wraps it under the newest key of a class.
    ///
    /// Throws `locked` when the class cannot be wrapped in the present state, and `agentNotReachable`.
    public func makeFileKey(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> NewFileKey {
        guard let key = try makeFileKeys(for: protectionClass, flags: flags, count: 1).first else {
            throw address.notReachable("the agent made no file key")
        }
        return key
    }

    /// The same `count` times: 256 in one round trip. Throws `invalidArgument` for a count below 1.
    public func makeFileKeys(
        for protectionClass: ProtectionClass, flags: KeyRecord.Flags, count: Int
    ) throws(ProtectionError) -> [NewFileKey] {
        guard count > 0 else { throw ProtectionError(.invalidArgument, "\(count) file keys cannot be made") }
        let result = try request { (link) throws(LinkLost) in
            try link.makeFileKeys(for: protectionClass, flags: flags, count: count)
        }
        return try result.get()
    }

    /// Opens a record: a trial of its own for every call, whoever else has the file open.
    ///
    /// Throws `locked`, `foreignKeybag`, `damaged(unwrap)`, and `agentNotReachable`. An agent that has ended is a locked
    /// one for all classes but D.
    public func unwrap(_ record: KeyRecord) throws(ProtectionError) -> any FileKeyLease {
        guard let result = unwrap([record]).first else { throw address.notReachable("the agent opened no record") }
        return try result.get()
    }

    /// Opens several records, each with its own result: 256 in one round trip, with several of these under way at once.
    public func unwrap(_ records: [KeyRecord]) -> [Result<any FileKeyLease, ProtectionError>] {
        guard !records.isEmpty else { return [] }
        let results = Result { () throws(ProtectionError) in
            try request { (link) throws(LinkLost) in try link.unwrap(records) }
        }
        switch results {
        case .success(let each): return each
        case .failure(let error): return records.map { .failure(Self.unwrapError(error, $0.protectionClass)) }
        }
    }

    /// Opens a record and makes a file key in one round trip.
    public func unwrap(
        _ record: KeyRecord, makingFileKeyFor protectionClass: ProtectionClass
    ) -> (old: Result<any FileKeyLease, ProtectionError>, new: Result<NewFileKey, ProtectionError>) {
        let results = Result { () throws(ProtectionError) in
            try request { (link) throws(LinkLost) in
                try link.unwrap(record, makingFileKeyFor: protectionClass)
            }
        }
        switch results {
        case .success(let both): return both
        case .failure(let error):
            return (.failure(Self.unwrapError(error, record.protectionClass)), .failure(error))
        }
    }

    private static func unwrapError(_ error: ProtectionError, _ protectionClass: ProtectionClass) -> ProtectionError {
        guard AgentTrouble(error) == .absent, protectionClass != .none else { return error }
        return ProtectionError(.locked(protectionClass), "locked: the agent has ended", cause: error)
    }

    /// Opens a record and wraps the same file key for another class under its newest key. For class A, a lock then takes
    /// the key from everyone to whom the agent lent it, under whichever class.
    public func rewrap(
        _ record: KeyRecord, to protectionClass: ProtectionClass, flags: KeyRecord.Flags
    ) throws(ProtectionError) -> KeyRecord {
        let result = try request { (link) throws(LinkLost) in
            try link.rewrap(record, to: protectionClass, flags: flags)
        }
        return try result.get()
    }
}
