import Foundation

// The numbers are those of Apple's systems; code compares them with each other only.

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFNull``.
public func CFNullGetTypeID() -> CFTypeID { 16 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFString``.
public func CFStringGetTypeID() -> CFTypeID { 7 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFDictionary``.
public func CFDictionaryGetTypeID() -> CFTypeID { 18 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFArray``.
public func CFArrayGetTypeID() -> CFTypeID { 19 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFData``.
public func CFDataGetTypeID() -> CFTypeID { 20 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFBoolean``.
public func CFBooleanGetTypeID() -> CFTypeID { 21 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFNumber``.
public func CFNumberGetTypeID() -> CFTypeID { 22 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFError``.
public func CFErrorGetTypeID() -> CFTypeID { 27 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``CFDate``.
public func CFDateGetTypeID() -> CFTypeID { 42 }
// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of ``SecAccessControl``.
public func SecAccessControlGetTypeID() -> CFTypeID { 0x1_0001 }

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The type of an object: equal to what the `…GetTypeID` function of its type returns, and 1 for objects of types that have
/// none here. Zero without an object.
public func CFGetTypeID(_ object: CFTypeRef!) -> CFTypeID {
    switch object as Any? {
    case nil: 0
    case is SecAccessControl: SecAccessControlGetTypeID()
    case is NSString: CFStringGetTypeID()
    case let number as NSNumber: number.isBoolean ? CFBooleanGetTypeID() : CFNumberGetTypeID()
    case is NSData: CFDataGetTypeID()
    case is NSDate: CFDateGetTypeID()
    case is NSDictionary: CFDictionaryGetTypeID()
    case is NSArray: CFArrayGetTypeID()
    case is NSNull: CFNullGetTypeID()
    case is NSError: CFErrorGetTypeID()
    default: 1
    }
}

extension NSNumber {
    /// True for the two objects that Booleans are bridged to; the numbers 0 and 1 are others.
    var isBoolean: Bool { self === kCFBooleanTrue || self === kCFBooleanFalse }
}
