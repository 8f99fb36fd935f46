import FileProtection
import Foundation
import PlainFoundation

extension NSURL {
    /// The resource values of a file by key: see `URL.resourceValues(forKeys:)`.
    public func resourceValues(forKeys keys: [URLResourceKey]) throws -> [URLResourceKey: Any] {
        var values = try PlainFoundation.resourceValues(of: self, keys)
        guard let own = try OwnResourceValues(self as URL, Set(keys)) else { return values }
        values[.fileProtectionKey] = own.protection
        for key in own.sizes { values[key] = own.length.map { NSNumber(value: $0) } ?? values[key] }
        return values
    }

    /// One resource value of a file; nil when it has none.
    public func getResourceValue(_ value: inout AnyObject?, forKey key: URLResourceKey) throws {
        let found = try resourceValues(forKeys: [key])[key]
        if let protection = found as? URLFileProtection {
            value = NSString(string: protection.rawValue)
        } else {
            value = found.map { $0 as AnyObject }
        }
    }

    /// Sets one resource value, as Foundation's call does; ``URLResourceKey/fileProtectionKey`` as
    /// `FileManager.setAttributes(_:ofItemAtPath:)` sets the class. Throws `CocoaError`.
    public func setResourceValue(_ value: Any?, forKey key: URLResourceKey) throws {
        try setResourceValues([key: value ?? NSNull()])
    }

    /// Sets several resource values. The protection class comes first; when it cannot be given nothing else is changed.
    public func setResourceValues(_ keyedValues: [URLResourceKey: Any]) throws {
        var others = keyedValues
        if let value = others.removeValue(forKey: .fileProtectionKey) {
            let path = (self as URL).path
            do throws(ProtectionError) {
                guard isFileURL else { throw ProtectionError(.unsupported, "only files have a protection class") }
                try FileManager.setProtectionClass(try ProtectionClass(protectionValue: value), ofItemAtPath: path)
            } catch {
                throw CocoaError(error, .writing, path: path)
            }
        }
        if !others.isEmpty { try PlainFoundation.setResourceValues(others, of: self) }
    }
}
