import FileProtection
import Foundation
import PlainFoundation

extension URL {
    /// The resource values of a file, as Foundation's call has them; with ``URLResourceKey/fileProtectionKey`` among the
    /// keys also its protection class. `.fileSizeKey` and `.totalFileSizeKey` are bytes of content. Needs no key, and works
    /// in every lock state: class and length are what the file claims. A link is not followed. Thread-safe.
    public func resourceValues(forKeys keys: Set<URLResourceKey>) throws -> URLResourceValues {
        var values = try PlainFoundation.resourceValues(of: self, keys)
        let own = try OwnResourceValues(self, keys)
        values.own = own
        return values
    }

    /// Sets the resource values that were changed in `values`, as Foundation's call does. The protection class is not among
    /// them, as on Apple's systems: `(url as NSURL).setResourceValue(_:forKey:)` sets it.
    public mutating func setResourceValues(_ values: URLResourceValues) throws {
        var plain = values
        plain.own = nil
        try PlainFoundation.setResourceValues(plain, of: &self)
    }
}

extension URLResourceValues {
    /// The class that the file claims, or that the directory gives to new files; nil for a plain one, and when it was not
    /// asked for.
    public var fileProtection: URLFileProtection? { own?.protection }

    /// Bytes of content. Nil when it was not asked for.
    public var fileSize: Int? { own?.length(.fileSizeKey) ?? PlainFoundation.fileSize(self) }

    /// Bytes of content. Nil when it was not asked for.
    public var totalFileSize: Int? { own?.length(.totalFileSizeKey) ?? PlainFoundation.totalFileSize(self) }

    /// Nil on Linux, unless it was set.
    public var quarantineProperties: [String: Any]? {
        get {
            var properties = PlainFoundation.quarantineProperties(self)
            properties?[OwnResourceValues.key] = nil
            return properties.flatMap { $0.isEmpty ? nil : $0 }
        }
        set {
            let kept = own
            PlainFoundation.setQuarantineProperties(newValue, &self)
            if let kept { own = kept }
        }
    }

    /// All values by key.
    public var allValues: [URLResourceKey: Any] {
        var values = PlainFoundation.allValues(self)
        values[.quarantinePropertiesKey] = quarantineProperties
        guard let own else { return values }
        values[.fileProtectionKey] = own.protection
        for key in own.sizes { values[key] = own.length.map { NSNumber(value: $0) } ?? values[key] }
        return values
    }

    /// What Foundation's values have no place for. They lie among properties that Linux has no use for, and the members
    /// above keep them out of sight.
    fileprivate(set) var own: OwnResourceValues? {
        get { PlainFoundation.quarantineProperties(self)?[OwnResourceValues.key] as? OwnResourceValues }
        set {
            var properties = PlainFoundation.quarantineProperties(self) ?? [:]
            properties[OwnResourceValues.key] = newValue
            PlainFoundation.setQuarantineProperties(properties.isEmpty ? nil : properties, &self)
        }
    }
}

/// The values that this module answers for.
struct OwnResourceValues: Sendable {
    static let key = "CandadoResourceValues"
    private static let sizeKeys: Set<URLResourceKey> = [.fileSizeKey, .totalFileSizeKey]

    /// The class, when it was asked for and there is one.
    let protection: URLFileProtection?
    /// Bytes of content, when a size was asked for and the file is protected.
    let length: UInt64?
    /// The keys that `length` is the value of.
    let sizes: Set<URLResourceKey>

    /// Nil when there is nothing to say beyond what Foundation says. Throws as Foundation's call does when nothing is there.
    init?(_ url: URL, _ keys: Set<URLResourceKey>) throws {
        let sizes = keys.intersection(Self.sizeKeys)
        let wantsClass = keys.contains(.fileProtectionKey)
        guard url.isFileURL, wantsClass || !sizes.isEmpty else { return nil }
        if wantsClass { _ = try PlainFoundation.resourceValues(of: url, [.isRegularFileKey]) }
        guard let item = Item(url, followsLinks: false) else { return nil }
        let protectionClass = wantsClass ? item.inspection?.protectionClass : nil
        let length = sizes.isEmpty ? nil : item.contentLength
        guard protectionClass != nil || length != nil else { return nil }
        protection = protectionClass.map { URLFileProtection($0) }
        self.length = length
        self.sizes = length == nil ? [] : sizes
    }

    func length(_ key: URLResourceKey) -> Int? {
        guard sizes.contains(key), let length else { return nil }
        return Int(clamping: length)
    }
}
