import Foundation

/// The calls of `URL` and `NSURL` on resource values, Foundation's own.
extension PlainFoundation {
    public static func resourceValues(of url: URL, _ keys: Set<URLResourceKey>) throws -> URLResourceValues {
        try url.resourceValues(forKeys: keys)
    }

    public static func setResourceValues(_ values: URLResourceValues, of url: inout URL) throws {
        try url.setResourceValues(values)
    }

    public static func allValues(_ values: URLResourceValues) -> [URLResourceKey: Any] { values.allValues }
    public static func fileSize(_ values: URLResourceValues) -> Int? { values.fileSize }
    public static func totalFileSize(_ values: URLResourceValues) -> Int? { values.totalFileSize }

    public static func quarantineProperties(_ values: URLResourceValues) -> [String: Any]? {
        values.quarantineProperties
    }

    public static func setQuarantineProperties(_ properties: [String: Any]?, _ values: inout URLResourceValues) {
        values.quarantineProperties = properties
    }

    public static func resourceValues(of url: NSURL, _ keys: [URLResourceKey]) throws -> [URLResourceKey: Any] {
        try url.resourceValues(forKeys: keys)
    }

    public static func setResourceValues(_ values: [URLResourceKey: Any], of url: NSURL) throws {
        try url.setResourceValues(values)
    }
}
