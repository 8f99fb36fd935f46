/// What is wrong with a request. Of several faults the one that is checked first counts (apple-semantics 3.10), so that the
/// answer does not depend on the order of a dictionary.
struct RequestFaults {
    /// In the order of the checks.
    enum Check: Int {
        /// Attributes that the public calls may not name.
        case hiddenAttribute
        /// The caller's groups, and what needs a right of its own.
        case entitlement
        case itemClass
        /// Types, unknown keys, keys that do not go together.
        case shape
        /// Attributes that the class does not have.
        case attribute
        /// What is right, and not there yet.
        case unimplemented
    }

    private var first: (check: Check, key: String, error: KeychainError)?

    /// `key` orders the faults of one check.
    mutating func note(_ check: Check, _ code: KeychainError.Code, _ key: String, _ message: String) {
        if let first, (first.check.rawValue, first.key) <= (check.rawValue, key) { return }
        first = (check, key, KeychainError(code, message))
    }

    mutating func malformed(_ key: String, _ message: String) { note(.shape, .malformed, key, message) }

    /// Throws the first fault.
    func check() throws(KeychainError) {
        if let first { throw first.error }
    }
}

extension String {
    /// A key of a request in a message: as it is where it can be one, and never a long or strange text of somebody else's.
    var quotedKey: String {
        let isPlain = utf8.count <= 32 && utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isPlain ? "'\(self)'" : "a key of \(utf8.count) bytes"
    }
}
