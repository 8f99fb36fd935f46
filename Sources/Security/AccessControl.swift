import Foundation
import KeychainModel

/// Who may do what with an item: an accessibility and constraints. Immutable, thread-safe. Equal when both are.
public final class SecAccessControl: NSObject, Sendable {
    let control: AccessControl

    init(_ control: AccessControl) { self.control = control }

    public override func isEqual(_ object: Any?) -> Bool { (object as? SecAccessControl)?.control == control }

    public override var hash: Int { control.hashValue }

    public override var description: String {
        "<SecAccessControl: \(control.accessibility.rawValue), flags \(String(control.flags.rawValue, radix: 16))>"
    }
}

/// Constraints of an access control. The bits are Apple's (SecAccessControl.h).
public struct SecAccessControlCreateFlags: OptionSet, Hashable, Sendable {
    public let rawValue: CFOptionFlags
    public init(rawValue: CFOptionFlags) { self.rawValue = rawValue }

    /// Biometry or the passcode.
    public static let userPresence = SecAccessControlCreateFlags(rawValue: 1 << 0)
    /// Any finger or face that is enrolled.
    public static let biometryAny = SecAccessControlCreateFlags(rawValue: 1 << 1)
    /// The fingers or faces that are enrolled when the item is added.
    public static let biometryCurrentSet = SecAccessControlCreateFlags(rawValue: 1 << 3)
    /// The passcode.
    public static let devicePasscode = SecAccessControlCreateFlags(rawValue: 1 << 4)
    /// A paired device nearby.
    public static let companion = SecAccessControlCreateFlags(rawValue: 1 << 5)
    /// A paired watch nearby.
    public static let watch = companion
    /// One of the constraints is enough.
    public static let or = SecAccessControlCreateFlags(rawValue: 1 << 14)
    /// All constraints have to be met. The default.
    public static let and = SecAccessControlCreateFlags(rawValue: 1 << 15)
    /// The constraints are those of using a private key.
    public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1 << 30)
    /// A password of the program goes into the key.
    public static let applicationPassword = SecAccessControlCreateFlags(rawValue: 1 << 31)

    @available(*, deprecated, renamed: "biometryAny")
    public static let touchIDAny = biometryAny
    @available(*, deprecated, renamed: "biometryCurrentSet")
    public static let touchIDCurrentSet = biometryCurrentSet
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// An access control of an accessibility (`kSecAttrAccessible…`) and constraints.
///
/// Nil, with an error of the domain `NSOSStatusErrorDomain` and the code ``errSecParam``, for an unknown accessibility and for
/// flags that do not go together. Items with constraints are refused with ``errSecUnimplemented`` until they can be enforced.
/// Thread-safe.
public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: CFTypeRef, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? {
    do throws(KeychainError) {
        // An NSString, or a Swift String in a box.
        guard let name = protection as Any as? String, let accessibility = Accessibility(rawValue: name) else {
            throw KeychainError(.malformed, "access control: the protection is no accessibility")
        }
        return SecAccessControl(
            try AccessControl(accessibility, AccessControl.Flags(rawValue: UInt64(flags.rawValue))))
    } catch let failure {
        error?.pointee = Unmanaged.passRetained(NSError(failure))
        return nil
    }
}
