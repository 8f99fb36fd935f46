import Foundation

extension NSMutableDictionary {
    /// Sets the value of a key, or removes the key when it is nil. Foundation has it on Apple's systems alone, and older code
    /// makes its queries with it.
    public func setValue(_ value: Any?, forKey key: String) {
        if let value { self[key] = value } else { removeObject(forKey: key) }
    }
}
