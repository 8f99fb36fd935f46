import Foundation

extension NSMutableDictionary {
    /// Sets the value of a key, or removes the key when it is nil. Foundation has it on Apple's systems alone, and older code
    /// makes its queries with it.
    public func setValue(_ value: Any?, forKey key: String) {
        if let value { self[key] = value } else { removeObject(forKey: key) }
    }
}

extension NSDictionary {
    /// A copy of another dictionary, of this class: `NSMutableDictionary(dictionary: query)` with a `query` of type
    /// `CFDictionary`. Foundation on Linux takes a dictionary of Swift's alone.
    public convenience init(dictionary other: NSDictionary) {
        var objects: [Any] = []
        var keys: [NSObject] = []
        other.enumerateKeysAndObjects { key, object, _ in
            if let key = (key as? NSObject) ?? (key as? String).map({ NSString(string: $0) }) {
                keys.append(key)
                objects.append(object)
            }
        }
        self.init(objects: objects, forKeys: keys)
    }
}
