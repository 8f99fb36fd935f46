import KeychainModel

/// What the agent's keychain says.
public enum KeychainReply: Sendable {
    /// Once, before anything is asked: the caller is known.
    case welcome
    /// One item of an answer.
    case result(ItemResult)
    /// All results have been sent.
    case answer(KeychainAnswer)
    /// The request failed: what was sent before counts for nothing. In place of a welcome: nothing will be served.
    case failure(KeychainError)
}

extension KeychainMessage {
    /// The message of a reply. Throws when it is too large for one.
    public init(_ reply: KeychainReply) throws(KeychainError) {
        switch reply {
        case .welcome: try self.init(.welcome) { _ in }
        case .result(let result): try self.init(.result) { $0.result(result) }
        case .answer(let answer): try self.init(.answer) { $0.answer(answer) }
        case .failure(let error): try self.init(.failure) { $0.error(error) }
        }
    }

    /// Decodes a reply. `body` is everything between the head and the secrets.
    public static func reply(
        _ head: Head, _ body: UnsafeRawBufferPointer, _ secrets: [ItemSecret]
    ) throws(MalformedMessage) -> KeychainReply {
        var reader = try reader(head, body, secrets)
        let reply: KeychainReply
        switch head.kind {
        case .welcome: reply = .welcome
        case .result: reply = .result(try reader.result())
        case .answer: reply = .answer(try reader.answer())
        case .failure: reply = .failure(try reader.error())
        case .add, .find, .update, .delete, .list, .purge, .adopt, .whoAmI:
            throw MalformedMessage("this is a request, not a reply")
        }
        try reader.requireEnd()
        return reply
    }
}

extension ItemWriter {
    fileprivate mutating func result(_ result: ItemResult) {
        wire.oneOf(result.itemClass, ItemClass.allCases)
        wire.oneOf(result.reference.itemClass, ItemClass.allCases)
        wire.raw(result.reference.identifier)
        longText(result.accessGroup)
        wire.number(result.accessibility.number)
        wire.flag(result.isLocked)
        wire.flag(result.attributes != nil)
        if let attributes = result.attributes { dictionary(attributes) }
        wire.flag(result.secret != nil)
        if let secret = result.secret { self.secret(secret) }
    }

    fileprivate mutating func answer(_ answer: KeychainAnswer) {
        wire.number(UInt64(clamping: answer.count))
        wire.flag(answer.caller != nil)
        guard let caller = answer.caller else { return }
        wire.flag(caller.applicationIdentifier != nil)
        if let identifier = caller.applicationIdentifier { longText(identifier) }
        wire.number(UInt16(clamping: caller.accessGroups.count))
        for group in caller.accessGroups.prefix(Int(UInt16.max)) { longText(group) }
        wire.flag(caller.holdsAllGroups)
        wire.oneOf(caller.source, Caller.Source.allCases)
    }

    fileprivate mutating func error(_ error: KeychainError) {
        wire.number(KeychainErrorNumber.number(of: error.code))
        wire.text(error.message)
    }
}

extension ItemReader {
    fileprivate mutating func result() throws(MalformedMessage) -> ItemResult {
        let itemClass = try wire.oneOf(ItemClass.allCases, "class")
        let referenceClass = try wire.oneOf(ItemClass.allCases, "class")
        guard let reference = PersistentReference(referenceClass, identifier: try wire.take(16)) else {
            throw MalformedMessage("a reference has no such identifier")
        }
        let group = try longText()
        let accessibility = try accessibility()
        let isLocked = try wire.flag()
        let attributes = try wire.flag() ? try dictionary() : nil
        let secret = try wire.flag() ? try secret() : nil
        return ItemResult(
            itemClass: itemClass, reference: reference, attributes: attributes, secret: secret, accessGroup: group,
            accessibility: accessibility, isLocked: isLocked)
    }

    fileprivate mutating func answer() throws(MalformedMessage) -> KeychainAnswer {
        guard let count = Int(exactly: try wire.number(UInt64.self)) else {
            throw MalformedMessage("so many items cannot be counted")
        }
        guard try wire.flag() else { return KeychainAnswer(count: count) }
        let identifier = try wire.flag() ? try longText() : nil
        var groups: [String] = []
        for _ in 0..<(try wire.number(UInt16.self)) { groups.append(try longText()) }
        let holdsAll = try wire.flag()
        return KeychainAnswer(
            count: count,
            caller: Caller(
                applicationIdentifier: identifier, accessGroups: groups, holdsAllGroups: holdsAll,
                source: try wire.oneOf(Caller.Source.allCases, "source")))
    }

    fileprivate mutating func error() throws(MalformedMessage) -> KeychainError {
        guard let code = KeychainErrorNumber.code(of: try wire.number(UInt8.self)) else {
            throw MalformedMessage("there is no such error")
        }
        return KeychainError(code, try wire.text())
    }
}

/// Codes of errors as numbers, which never change.
enum KeychainErrorNumber {
    static func number(of code: KeychainError.Code) -> UInt8 {
        switch code {
        case .malformed: 1
        case .unimplemented: 2
        case .duplicateItem: 3
        case .itemNotFound: 4
        case .noSuchAttribute: 5
        case .noSuchClass: 6
        case .locked: 7
        case .interactionNotAllowed: 8
        case .notAvailable: 9
        case .authenticationFailed: 10
        case .undecodable: 11
        case .missingEntitlement: 12
        case .restricted: 13
        case .diskFull: 14
        case .inputOutput: 15
        case .readOnly: 16
        case .outOfMemory: 17
        case .cancelled: 18
        case .damagedDatabase: 19
        case .needsNewerVersion: 20
        case .agentNotReachable: 21
        case .busy: 22
        }
    }

    static func code(of number: UInt8) -> KeychainError.Code? {
        KeychainError.Code.allCases.first { self.number(of: $0) == number }
    }
}
