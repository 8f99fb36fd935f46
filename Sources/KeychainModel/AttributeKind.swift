/// What values an attribute takes, and how they are kept: apple-semantics 3.1 and 3.9.
package enum AttributeKind: String, CaseIterable, Sendable {
    /// Text or bytes, which stay what they were.
    case text
    /// Text, bytes or a whole number, such as the four-letter code of a protocol.
    case code
    /// A whole number, a Boolean (0 or 1), or a number in decimal digits.
    case number
    case date
    /// Text only: a group is a name.
    case group
    /// One of the texts of ``Accessibility``.
    case accessibility
    case accessControl
    /// Like a number, but only 0, 1 and, where that has a meaning, "syna".
    case synchronizability

    /// The value as items hold it, so that equal values are equal in one form. Nil: of the wrong type.
    package func normalized(_ value: ItemValue) -> ItemValue? {
        switch self {
        case .text:
            switch value {
            case .text, .data: value
            default: nil
            }
        case .code:
            switch value {
            case .text, .data: value
            default: value.wholeNumber.map { .number($0) }
            }
        case .number: value.wholeNumber.map { .number($0) }
        case .date:
            if case .date(let seconds) = value, seconds.isFinite { value } else { nil }
        case .group:
            if case .text = value { value } else { nil }
        case .accessibility:
            if case .text(let text) = value, Accessibility(rawValue: text) != nil { value } else { nil }
        case .accessControl:
            if case .accessControl = value { value } else { nil }
        case .synchronizability:
            if case .text(let text) = value, text == SynchronizabilityFilter.anyText {
                value
            } else if let number = value.wholeNumber, number == 0 || number == 1 {
                .number(number)
            } else {
                nil
            }
        }
    }
}

extension ItemValue {
    /// The number that this is: a fraction of nothing, a Boolean and digits included.
    package var wholeNumber: Int64? {
        switch self {
        case .number(let number): number
        case .boolean(let boolean): boolean ? 1 : 0
        case .real(let real): Int64(exactly: real)
        // What prints as it was read: " 1", "+1" and "01" are no numbers.
        case .text(let text): Int64(text).flatMap { String($0) == text ? $0 : nil }
        default: nil
        }
    }

    /// Yes or no, from a Boolean or a number; nil for anything else.
    package var truth: Bool? {
        switch self {
        case .boolean(let boolean): boolean
        case .number(let number): number != 0
        case .real(let real): real.isNaN ? nil : real != 0
        default: nil
        }
    }

    /// True when both are the same value of the same kind, byte for byte: texts that only look alike differ.
    package func isSame(as other: ItemValue) -> Bool {
        switch (self, other) {
        case (.text(let one), .text(let two)): one.hasSameBytes(as: two)
        case (.data(let one), .data(let two)): one == two
        case (.number(let one), .number(let two)): one == two
        case (.date(let one), .date(let two)): one == two
        case (.accessControl(let one), .accessControl(let two)): one == two
        default: false
        }
    }

    /// Bytes of texts and data: what the limit of an item's attributes counts.
    package var byteCount: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let bytes): bytes.count
        case .list(let values): values.reduce(0) { $0 + $1.byteCount }
        case .dictionary(let values): values.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount }
        default: 0
        }
    }
}

extension String {
    /// True when both have the same bytes. `==` calls texts equal that look equal, which are different names.
    package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
}
