import ProtectedFoundation

/// Entries that nobody reads while the user is away.
struct Journal {
    let folder: URL

    func save(_ text: String, as name: String) throws {
        let data = Data(text.utf8)
        try data.write(to: folder.appendingPathComponent(name), options: [.completeFileProtection])
    }

    func saveAtomically(_ text: String, as name: String) throws {
        try Data(text.utf8).write(
            to: folder.appendingPathComponent(name), options: [.atomic, .completeFileProtection])
    }

    func load(_ name: String) throws -> String {
        let data = try Data(contentsOf: folder.appendingPathComponent(name))
        return String(decoding: data, as: UTF8.self)
    }

    /// What was written before anybody thought of protection.
    func protectExisting(_ name: String, with type: FileProtectionType) throws {
        try FileManager.default.setAttributes(
            [.protectionKey: type],
            ofItemAtPath: folder.appendingPathComponent(name).path
        )
    }

    func protection(of name: String) throws -> (type: FileProtectionType?, size: Int) {
        let attributes = try FileManager.default.attributesOfItem(
            atPath: folder.appendingPathComponent(name).path)
        let size = (attributes[.size] as? NSNumber)?.intValue ?? -1
        return (attributes[.protectionKey] as? FileProtectionType, size)
    }
}
