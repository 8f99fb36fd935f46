import Keychain
import KeychainModel

/// What is shown of an item, without its secret.
struct ItemReport: Sendable {
    private let item: ItemResult

    init(_ item: ItemResult) { self.item = item }

    private static let names: [(key: String, member: String)] = [
        ("svce", "service"), ("srvr", "server"), ("acct", "account"), ("path", "path"), ("sdmn", "security_domain"),
        ("labl", "label"), ("icmt", "comment"),
    ]

    /// Members of a JSON document.
    var members: [JSON.Member] {
        var result: [JSON.Member] = [
            .init("class", .string(item.itemClass.name)), .init("group", .string(item.accessGroup)),
            .init("accessible", .string(item.accessibility.name)), .init("locked", .boolean(item.isLocked)),
            .init("reference", .string(JSON.base64(item.reference.bytes))),
        ]
        guard let attributes = item.attributes else { return result }
        result.append(.init("synchronizable", .boolean(attributes.isSynchronizable)))
        for (key, member) in Self.names {
            switch attributes[key] {
            case .text(let text): result.append(.init(member, .string(text)))
            case .data(let bytes): result.append(.init(member + "_bytes", .string(JSON.base64(bytes))))
            default: break
            }
        }
        if case .text(let code) = attributes["ptcl"] {
            result.append(.init("protocol", .string(InternetProtocol(rawValue: code)?.name ?? code)))
        }
        if case .number(let port) = attributes["port"], port != 0 { result.append(.init("port", .integer(port))) }
        if case .date(let seconds) = attributes["cdat"] { result.append(.init("created", Self.time(seconds))) }
        if case .date(let seconds) = attributes["mdat"] { result.append(.init("modified", Self.time(seconds))) }
        return result
    }

    /// Seconds since 1970 from those since 2001.
    private static func time(_ seconds: Double) -> JSON {
        let since1970 = seconds + 978_307_200
        guard since1970.isFinite else { return .null }
        return .integer(Int64(min(max(since1970.rounded(.down), -1e15), 1e15)))
    }

    /// Cells of a table: class, access group, accessibility, name.
    var cells: [String] {
        [item.itemClass.name, Quoted.text(item.accessGroup), item.accessibility.name, name]
    }

    private var name: String {
        guard let attributes = item.attributes else { return "locked" }
        var parts = Self.names.compactMap { (key, member) -> String? in
            guard let value = Self.shown(attributes[key]) else { return nil }
            return "\(member) \(value)"
        }
        if case .text(let code) = attributes["ptcl"] {
            parts.append("protocol \(InternetProtocol(rawValue: code)?.name ?? Quoted.text(code))")
        }
        if case .number(let port) = attributes["port"], port != 0 { parts.append("port \(port)") }
        if attributes.isSynchronizable { parts.append("synchronizable") }
        return parts.joined(separator: ", ")
    }

    private static func shown(_ value: ItemValue?) -> String? {
        switch value {
        case .text(let text): text.isEmpty ? nil : Quoted.text(text)
        case .data(let bytes): bytes.isEmpty ? nil : "\(bytes.count) bytes"
        default: nil
        }
    }
}

extension ItemDictionary {
    fileprivate var isSynchronizable: Bool {
        switch self["sync"] {
        case .number(let number): number == 1
        case .boolean(let flag): flag
        default: false
        }
    }
}
