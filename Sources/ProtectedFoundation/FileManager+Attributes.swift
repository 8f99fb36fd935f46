import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Changes attributes of an item, as Foundation's call does; with `.protectionKey` its protection class too: a plain
    /// file becomes a protected one where it lies, a protected one is wrapped for the class, and a directory gives it to new
    /// files. The class comes first, and when it cannot be given nothing else is changed.
    ///
    /// The class is a `FileProtectionType` or its raw value; one that is not known is an error. `.none` is class D, not
    /// "unprotected". Throws `CocoaError` on the reading side for the class, as on Apple's systems: 257 with `EPERM` beneath
    /// when the state matrix does not allow the change. Thread-safe.
    public func setAttributes(_ attributes: [FileAttributeKey: Any], ofItemAtPath path: String) throws {
        var others = attributes.withoutKeyRecord
        others[.protectionKey] = nil
        do throws(ProtectionError) {
            if let wanted = try ProtectionClass(in: attributes) {
                try Self.setProtectionClass(wanted, ofItemAtPath: path)
            }
        } catch {
            throw CocoaError(error, error.isAboutThePlace ? .writing : .reading, path: path)
        }
        if !others.isEmpty { try PlainFoundation.setAttributes(others, ofItemAtPath: path, self) }
    }

    /// The attributes of an item, as Foundation's call has them; of a protected file `.size` is the bytes of its content, and
    /// `.protectionKey` the class that it claims, or that a directory gives to new files. Needs no key, and works in every
    /// lock state.
    ///
    /// The value of `.protectionKey` can be taken as a `FileProtectionType` and as a `String`. Thread-safe.
    public func attributesOfItem(atPath path: String) throws -> [FileAttributeKey: Any] {
        var attributes = try PlainFoundation.attributesOfItem(atPath: path, self).withoutKeyRecord
        guard let item = Item(path, followsLinks: false) else { return attributes }
        if let protectionClass = item.inspection?.protectionClass {
            attributes[.protectionKey] = protectionClass.fileProtectionType._bridgeToObjectiveC()
        }
        if let length = item.contentLength { attributes[.size] = NSNumber(value: length) }
        return attributes
    }

    /// Throws `unsupported` for what can have no class, and as `FileProtection.setProtectionClass` and its `convert` do.
    static func setProtectionClass(
        _ wanted: ProtectionClass, ofItemAtPath path: String
    ) throws(ProtectionError) {
        guard let item = Item(path) else { throw ProtectionError(.system(ErrorNumber.noEntry), "no such file") }
        if let problem = item.problem { throw problem }
        guard item.inspection != nil else {
            if item.path.isThere {
                throw ProtectionError(
                    .unsupported, "the file system has no extended attributes of users, which hold the key record",
                    path: item.path, reason: .fileSystem)
            }
            throw ProtectionError(.system(ErrorNumber.noEntry), "no such file or directory", path: item.path)
        }
        let protection = try Keys.protection
        if item.isDirectory || item.isProtected {
            try protection.setProtectionClass(wanted, of: item.path)
        } else {
            try protection.protectPlainFile(item.path, wanted)
        }
    }
}

extension FileProtection {
    /// Protects a plain file where it lies. Throws whatever kept it plain.
    func protectPlainFile(_ path: FilePath, _ wanted: ProtectionClass) throws(ProtectionError) {
        let outcomes = Outcomes()
        try convert(path, .protect(wanted)) { outcomes.add($0, at: path) }
        if let failure = outcomes.failure { throw failure }
        guard outcomes.isDone else {
            throw ProtectionError(.unsupported, "this is not a regular file", path: path, reason: .notRegular)
        }
    }
}

extension Dictionary<FileAttributeKey, Any> {
    /// Foundation lists extended attributes under a name of its own. The key record belongs to its file alone: on another
    /// one it would make damage.
    var withoutKeyRecord: Self {
        let key = FileAttributeKey("NSFileExtendedAttributes")
        guard var extended = self[key] as? [String: Data], extended[KeyRecord.attributeName] != nil else { return self }
        extended[KeyRecord.attributeName] = nil
        var result = self
        result[key] = extended.isEmpty ? nil : extended
        return result
    }
}

extension ProtectionError {
    /// Missing, full or read-only: what Foundation's call says of the same is on the writing side.
    fileprivate var isAboutThePlace: Bool {
        switch code {
        case .system(let number): [ENOENT, ENOSPC, EDQUOT, EROFS].contains(number)
        default: false
        }
    }
}

extension Item {
    /// Bytes of content of a protected file, as its header claims; nil for every other, and when no header decodes.
    var contentLength: UInt64? {
        guard isProtected else { return nil }
        return try? FileInspection.contentLength(of: path)
    }
}
