import KeychainModel

/// What names a password and describes it: ``GenericPassword`` or ``InternetPassword``. Its secret is no part of it.
public protocol Password: Hashable, Sendable {
    /// Says which of them are meant.
    associatedtype Filter: PasswordFilter

    /// What its items are.
    static var itemClass: ItemClass { get }
    /// The attributes that tell it from others of its access group and synchronizability, by Apple's keys.
    var identity: ItemDictionary { get }
    /// Those that only describe it.
    var details: ItemDictionary { get }
    /// Nil for the program's own group, the first that it holds.
    var accessGroup: String? { get }
    /// Whether it may be synchronized to other machines. Two passwords may differ in this alone.
    var isSynchronizable: Bool { get }

    /// From the attributes of an item.
    init(_ attributes: ItemDictionary)
}

/// Which passwords are meant: those that have everything that is said.
public protocol PasswordFilter: Sendable {
    /// The attributes that are asked for, by Apple's keys.
    var attributes: ItemDictionary { get }
    /// Whether those without an access group mean every group that this process holds, and not its own alone.
    var spansAccessGroups: Bool { get }
}

extension Password {
    /// The query that finds exactly this one.
    var query: ItemDictionary {
        var query = identity
        query["class"] = .text(Self.itemClass.rawValue)
        query["sync"] = .boolean(isSynchronizable)
        if let accessGroup { query["agrp"] = .text(accessGroup) }
        return query
    }
}

extension ItemDictionary {
    /// The text of an attribute, also of one that was stored as the bytes of a text.
    func text(_ key: String) -> String? {
        switch self[key] {
        case .text(let text): text
        case .data(let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }

    func number(_ key: String) -> Int64? {
        switch self[key] {
        case .number(let number): number
        case .boolean(let flag): flag ? 1 : 0
        default: nil
        }
    }

    /// Says an attribute that is there.
    mutating func set(_ key: String, _ text: String?) {
        if let text { self[key] = .text(text) }
    }
}

/// A password of a service that is no server: `kSecClassGenericPassword`. No two have the same service, account, access
/// group and synchronizability.
public struct GenericPassword: Password {
    /// What its items are.
    public static let itemClass = ItemClass.genericPassword

    /// What it is a password of.
    public var service: String
    /// Whose password it is.
    public var account: String
    /// What a person is shown.
    public var label: String?
    /// What a person has noted.
    public var comment: String?
    /// Whose programs see it. Nil is the program's own group, the first that it holds.
    public var accessGroup: String?
    /// Whether it may be synchronized to other machines. Two passwords may differ in this alone.
    public var isSynchronizable: Bool

    /// Says what there is to say; the rest is not said.
    public init(
        service: String, account: String, label: String? = nil, comment: String? = nil, accessGroup: String? = nil,
        isSynchronizable: Bool = false
    ) {
        self.service = service
        self.account = account
        self.label = label
        self.comment = comment
        self.accessGroup = accessGroup
        self.isSynchronizable = isSynchronizable
    }

    /// From the attributes of an item.
    public init(_ attributes: ItemDictionary) {
        self.init(
            service: attributes.text("svce") ?? "", account: attributes.text("acct") ?? "",
            label: attributes.text("labl"), comment: attributes.text("icmt"), accessGroup: attributes.text("agrp"),
            isSynchronizable: attributes.number("sync") == 1)
    }

    /// What tells it from others, by Apple's keys.
    public var identity: ItemDictionary { ["svce": .text(service), "acct": .text(account)] }

    /// What only describes it, by Apple's keys.
    public var details: ItemDictionary {
        var result: ItemDictionary = [:]
        result.set("labl", label)
        result.set("icmt", comment)
        return result
    }

    /// Which generic passwords are meant. Nil: any.
    public struct Filter: PasswordFilter {
        /// What it is a password of.
        public var service: String?
        /// Whose password.
        public var account: String?
        /// Whose programs see it; nil is the program's own group, the first that it holds.
        public var accessGroup: String?
        /// Nil: both kinds.
        public var isSynchronizable: Bool?
        /// True: where no group is named, those of every group that this process holds.
        public var spansAccessGroups: Bool

        /// Those that have everything that is given.
        public init(
            service: String? = nil, account: String? = nil, accessGroup: String? = nil, isSynchronizable: Bool? = nil,
            spansAccessGroups: Bool = false
        ) {
            self.service = service
            self.account = account
            self.accessGroup = accessGroup
            self.isSynchronizable = isSynchronizable
            self.spansAccessGroups = spansAccessGroups
        }

        /// What is asked for, by Apple's keys.
        public var attributes: ItemDictionary {
            var result: ItemDictionary = ["sync": isSynchronizable.map { .boolean($0) } ?? .text("syna")]
            result.set("svce", service)
            result.set("acct", account)
            result.set("agrp", accessGroup)
            return result
        }
    }
}
