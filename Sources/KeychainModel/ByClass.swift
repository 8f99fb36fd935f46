/// Something for each class of items, found without hashing its name.
package struct ByClass<Value> {
    private let genericPassword, internetPassword, certificate, key, identity: Value

    package init(_ make: (ItemClass) -> Value) {
        genericPassword = make(.genericPassword)
        internetPassword = make(.internetPassword)
        certificate = make(.certificate)
        key = make(.key)
        identity = make(.identity)
    }

    package subscript(_ itemClass: ItemClass) -> Value {
        switch itemClass {
        case .genericPassword: genericPassword
        case .internetPassword: internetPassword
        case .certificate: certificate
        case .key: key
        case .identity: identity
        }
    }
}

extension ByClass: Sendable where Value: Sendable {}
