import Foundation

/// The domain of errors whose code is an ``OSStatus``.
nonisolated(unsafe) public let kCFErrorDomainOSStatus: CFErrorDomain! = NSString(string: "NSOSStatusErrorDomain")
/// The domain of errors of Foundation.
nonisolated(unsafe) public let kCFErrorDomainCocoa: CFErrorDomain! = NSString(string: "NSCocoaErrorDomain")
/// The domain of errors whose code is an `errno`.
nonisolated(unsafe) public let kCFErrorDomainPOSIX: CFErrorDomain! = NSString(string: "NSPOSIXErrorDomain")

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The domain of an error.
public func CFErrorGetDomain(_ error: CFError!) -> CFErrorDomain! { error.map { NSString(string: $0.domain) } }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The code of an error; 0 without one.
public func CFErrorGetCode(_ error: CFError!) -> CFIndex { error?.code ?? 0 }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// What else an error carries.
public func CFErrorCopyUserInfo(_ error: CFError!) -> CFDictionary! { error.map { $0.userInfo as NSDictionary } }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// What an error says.
public func CFErrorCopyDescription(_ error: CFError!) -> CFString! {
    error.map { NSString(string: $0.localizedDescription) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Why an error came about, when it says so.
public func CFErrorCopyFailureReason(_ error: CFError!) -> CFString! {
    error?.localizedFailureReason.map { NSString(string: $0) }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// What can be done about an error, when it says so.
public func CFErrorCopyRecoverySuggestion(_ error: CFError!) -> CFString! {
    error?.localizedRecoverySuggestion.map { NSString(string: $0) }
}
