import Foundation

/// What Foundation alone reads of a protected file's attributes: the key record is among them.
enum KeyRecordReader {
    static func attributes(of path: String) throws -> [FileAttributeKey: Any]? {
        let key = FileAttributeKey("NSFileExtendedAttributes")
        return try FileManager.default.attributesOfItem(atPath: path)[key].map { [key: $0] }
    }
}
