/// A value in a query or in the attributes of an item, as it came: what kind it has to be is the grammar's business.
public enum ItemValue: Sendable {
    case text(String)
    /// Bytes of an attribute. Never those of `v_Data`, which are ``secret(_:)``.
    case data([UInt8])
    /// A whole number. A Boolean of a caller is ``boolean(_:)``; the two compare as Apple's numbers do (1 is true).
    case number(Int64)
    /// A number with a fraction.
    case real(Double)
    case boolean(Bool)
    /// Seconds since 2001-01-01 00:00:00 UTC.
    case date(Double)
    /// The bytes of `v_Data`.
    case secret(ItemSecret)
    case accessControl(AccessControl)
    case list([ItemValue])
    case dictionary([String: ItemValue])
    case null
    /// A value of a type that no key takes: its type's name, for the message.
    case foreign(String)
}

/// Keys are Apple's strings (`acct`, `r_Data`, `m_Limit`, …: apple-semantics 3.9).
public typealias ItemDictionary = [String: ItemValue]
