import Foundation

// Core Foundation's names, as far as code that uses a keychain needs them: each type is the class of Foundation that it is
// bridged with on Apple's systems, so that the same conversions compile.

/// A text. Every class, attribute and key of a query is one.
public typealias CFString = NSString
/// A dictionary: queries and attributes. Made with `as CFDictionary` from any Swift dictionary.
public typealias CFDictionary = NSDictionary
/// A dictionary that can be changed.
public typealias CFMutableDictionary = NSMutableDictionary
/// A list.
public typealias CFArray = NSArray
/// A list that can be changed.
public typealias CFMutableArray = NSMutableArray
/// Bytes.
public typealias CFData = NSData
/// A point in time.
public typealias CFDate = NSDate
/// A number.
public typealias CFNumber = NSNumber
/// True or false.
public typealias CFBoolean = NSNumber
/// No value.
public typealias CFNull = NSNull
/// An error.
public typealias CFError = NSError
/// The domain of an error.
public typealias CFErrorDomain = NSString
/// Any object.
public typealias CFTypeRef = AnyObject

/// A count or an index.
public typealias CFIndex = Int
/// Flags of an option set.
public typealias CFOptionFlags = UInt
/// Names a type: ``CFGetTypeID(_:)``.
public typealias CFTypeID = UInt
/// What a function of this module came to: ``errSecSuccess`` or one of the other `errSec…` codes.
public typealias OSStatus = Int32
/// A code of four characters.
public typealias FourCharCode = UInt32
/// A type of four characters.
public typealias OSType = FourCharCode

/// No error.
public let noErr: OSStatus = 0

/// Says where memory comes from, which nobody can choose here.
public final class CFAllocator: Sendable {
    private init() {}
}

/// The default allocator: nil, as on Apple's systems.
public let kCFAllocatorDefault: CFAllocator! = nil

/// True.
public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
/// False.
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
/// No value.
public let kCFNull: CFNull! = NSNull()

/// The key of a bundle's identifier in its information property list.
nonisolated(unsafe) public let kCFBundleIdentifierKey: CFString! = NSString(string: "CFBundleIdentifier")
/// The key of a bundle's name.
nonisolated(unsafe) public let kCFBundleNameKey: CFString! = NSString(string: "CFBundleName")
/// The key of a bundle's executable.
nonisolated(unsafe) public let kCFBundleExecutableKey: CFString! = NSString(string: "CFBundleExecutable")
/// The key of a bundle's version.
nonisolated(unsafe) public let kCFBundleVersionKey: CFString! = NSString(string: "CFBundleVersion")
/// The key of the version of a bundle's information property list.
nonisolated(unsafe) public let kCFBundleInfoDictionaryVersionKey: CFString! =
    NSString(string: "CFBundleInfoDictionaryVersion")
/// The key of the language that a bundle was developed in.
nonisolated(unsafe) public let kCFBundleDevelopmentRegionKey: CFString! = NSString(string: "CFBundleDevelopmentRegion")

// swift-format-ignore: AlwaysUseLowerCamelCase
/// True when both are equal.
public func CFEqual(_ one: CFTypeRef!, _ other: CFTypeRef!) -> Bool {
    guard let one, let other else { return one == nil && other == nil }
    if let object = one as? NSObject { return object.isEqual(other) }
    return one === other
}
