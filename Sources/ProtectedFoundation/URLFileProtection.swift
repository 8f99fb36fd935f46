import FileProtection
import Foundation

/// A protection class as resource values of URLs name it. The raw values are Apple's.
public struct URLFileProtection: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    static let prefix = "NSURLFileProtection"

    /// Class A: readable while unlocked.
    public static let complete = URLFileProtection(rawValue: "NSURLFileProtectionComplete")
    /// Class B: readable while unlocked, or through what was open at lock.
    public static let completeUnlessOpen = URLFileProtection(rawValue: "NSURLFileProtectionCompleteUnlessOpen")
    /// Class C: readable from the first unlock on.
    public static let completeUntilFirstUserAuthentication = URLFileProtection(
        rawValue: "NSURLFileProtectionCompleteUntilFirstUserAuthentication")
    /// Class D: readable always.
    public static let none = URLFileProtection(rawValue: "NSURLFileProtectionNone")

    /// The name of a class.
    init(_ protectionClass: ProtectionClass) {
        self =
            switch protectionClass {
            case .complete: .complete
            case .completeUnlessOpen: .completeUnlessOpen
            case .completeUntilFirstUserAuthentication: .completeUntilFirstUserAuthentication
            case .none: .none
            }
    }
}

extension ProtectionClass {
    /// Throws `unsupported` for one without a class.
    init(_ protection: URLFileProtection) throws(ProtectionError) {
        switch protection {
        case .complete: self = .complete
        case .completeUnlessOpen: self = .completeUnlessOpen
        case .completeUntilFirstUserAuthentication: self = .completeUntilFirstUserAuthentication
        case .none: self = .none
        default: throw ProtectionError(.unsupported, "the protection class \(protection.rawValue) is not supported")
        }
    }
}

extension URLResourceKey {
    /// The protection class of a file, or that a directory gives to new files: a ``URLFileProtection``.
    public static let fileProtectionKey = URLResourceKey(rawValue: "NSURLFileProtectionKey")
}
