import Foundation

// As in Foundation these are a property list read or written with the calls of Data, which here are the ones of this module.

extension NSArray {
    /// Reads a property list, from a protected file only while its class can be read. Throws like `Data(contentsOf:)`.
    public convenience init(contentsOf url: URL, error: ()) throws {
        let list = try PropertyListSerialization.propertyList(
            from: try Data(contentsOf: url), options: [], format: nil)
        guard let array = list as? [Any] else {
            throw NSError(
                domain: NSCocoaErrorDomain, code: CocoaError.propertyListReadCorrupt.rawValue,
                userInfo: [NSURLErrorKey: url])
        }
        self.init(array: array)
    }

    /// Nil when the file cannot be read, also when it is locked.
    @available(*, deprecated)
    public convenience init?(contentsOf url: URL) { try? self.init(contentsOf: url, error: ()) }

    /// Nil when the file cannot be read, also when it is locked.
    @available(*, deprecated)
    public convenience init?(contentsOfFile path: String) {
        try? self.init(contentsOf: URL(fileURLWithPath: path), error: ())
    }

    /// Writes a property list, protected when what it replaces or the directory has a class. Throws like `Data.write(to:)`.
    public func write(to url: URL) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: self, format: .xml, options: 0)
        try data.write(to: url, options: .atomic)
    }

    /// False when nothing was written.
    @available(*, deprecated)
    @discardableResult
    public func write(to url: URL, atomically: Bool) -> Bool {
        guard let data = try? PropertyListSerialization.data(fromPropertyList: self, format: .xml, options: 0) else {
            return false
        }
        return (try? data.write(to: url, options: atomically ? .atomic : [])) != nil
    }

    /// False when nothing was written.
    @available(*, deprecated)
    @discardableResult
    public func write(toFile path: String, atomically useAuxiliaryFile: Bool) -> Bool {
        write(to: URL(fileURLWithPath: path), atomically: useAuxiliaryFile)
    }
}

extension NSDictionary {
    /// Nil when the file cannot be read, also when it is locked.
    @available(*, deprecated)
    public convenience init?(contentsOf url: URL) {
        guard let data = try? Data(contentsOf: url),
            let list = try? PropertyListSerialization.propertyList(from: data, options: [], format: nil),
            let dictionary = list as? [AnyHashable: Any]
        else { return nil }
        self.init(dictionary: dictionary)
    }

    /// Nil when the file cannot be read, also when it is locked.
    @available(*, deprecated)
    public convenience init?(contentsOfFile path: String) { self.init(contentsOf: URL(fileURLWithPath: path)) }

    /// Writes a property list, protected when what it replaces or the directory has a class. False when nothing was written.
    @available(*, deprecated)
    @discardableResult
    public func write(to url: URL, atomically: Bool) -> Bool {
        guard let data = try? PropertyListSerialization.data(fromPropertyList: self, format: .xml, options: 0) else {
            return false
        }
        return (try? data.write(to: url, options: atomically ? .atomic : [])) != nil
    }

    /// False when nothing was written.
    @available(*, deprecated)
    @discardableResult
    public func write(toFile path: String, atomically useAuxiliaryFile: Bool) -> Bool {
        write(to: URL(fileURLWithPath: path), atomically: useAuxiliaryFile)
    }
}
