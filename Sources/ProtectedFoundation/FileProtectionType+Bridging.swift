import Foundation

/// A value of `.protectionKey` can be taken as a `FileProtectionType` and as a `String`, as on Apple's systems, where both
/// are the same object.
extension FileProtectionType: @retroactive _ObjectiveCBridgeable {
    public func _bridgeToObjectiveC() -> NSString { NSString(string: rawValue) }

    public static func _forceBridgeFromObjectiveC(_ source: NSString, result: inout FileProtectionType?) {
        result = _unconditionallyBridgeFromObjectiveC(source)
    }

    @discardableResult
    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSString, result: inout FileProtectionType?
    ) -> Bool {
        result = _unconditionallyBridgeFromObjectiveC(source)
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSString?) -> FileProtectionType {
        FileProtectionType(rawValue: String._unconditionallyBridgeFromObjectiveC(source))
    }
}
