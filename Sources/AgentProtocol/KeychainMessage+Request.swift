import KeychainModel

extension KeychainMessage {
    /// The message of a request. Throws `malformed` when it is too large for one.
    public init(_ request: KeychainRequest) throws(KeychainError) {
        switch request {
        case .add(let query): try self.init(.add) { $0.dictionary(query) }
        case .find(let query): try self.init(.find) { $0.dictionary(query) }
        case .update(let query, let changes):
            try self.init(.update) {
                $0.dictionary(query)
                $0.dictionary(changes)
            }
        case .delete(let query): try self.init(.delete) { $0.dictionary(query) }
        case .list(let query): try self.init(.list) { $0.dictionary(query) }
        case .purge(let group): try self.init(.purge) { $0.longText(group) }
        case .adopt(let old, let new):
            try self.init(.adopt) {
                $0.longText(old)
                $0.longText(new)
            }
        case .whoAmI: try self.init(.whoAmI) { _ in }
        }
    }

    /// Decodes a request. `body` is everything between the head and the secrets.
    public static func request(
        _ head: Head, _ body: UnsafeRawBufferPointer, _ secrets: [ItemSecret]
    ) throws(MalformedMessage) -> KeychainRequest {
        var reader = try reader(head, body, secrets)
        let request: KeychainRequest
        switch head.kind {
        case .add: request = .add(try reader.dictionary())
        case .find: request = .find(try reader.dictionary())
        case .update:
            let query = try reader.dictionary()
            request = .update(query, to: try reader.dictionary())
        case .delete: request = .delete(try reader.dictionary())
        case .list: request = .list(try reader.dictionary())
        case .purge: request = .purge(accessGroup: try reader.longText())
        case .adopt:
            let old = try reader.longText()
            request = .adopt(from: old, to: try reader.longText())
        case .whoAmI: request = .whoAmI
        case .welcome, .result, .answer, .failure: throw MalformedMessage("this is a reply, not a request")
        }
        try reader.requireEnd()
        return request
    }

    static func reader(
        _ head: Head, _ body: UnsafeRawBufferPointer, _ secrets: [ItemSecret]
    ) throws(MalformedMessage) -> ItemReader {
        guard body.count == head.bodySize, try head.secretSizes(in: body) == secrets.map(\.count) else {
            throw MalformedMessage("the message is cut short")
        }
        return ItemReader(UnsafeRawBufferPointer(rebasing: body.dropFirst(head.secretCount * 4)), secrets)
    }
}
