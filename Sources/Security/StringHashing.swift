import Foundation

/// Makes an `NSString` and the `String` of the same characters one key of `[AnyHashable: Any]`, as they are on Apple's systems.
///
/// On Linux they are two by themselves, so that `attributes[kSecAttrAccount]` finds nothing in a result cast to
/// `[AnyHashable: Any]`. It is a deliberate choice with an underscored protocol of the standard library, and it holds for the
/// whole process: `docs/security-module.md`.
extension NSString: @retroactive _HasCustomAnyHashableRepresentation {
    public func _toCustomAnyHashable() -> AnyHashable? { AnyHashable(self as String) }
}
