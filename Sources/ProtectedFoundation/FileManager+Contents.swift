import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Writes a file, as Foundation's call does; protected when the attributes name a class, when it replaces a protected
    /// file, or when the directory gives one. What is protected is written atomically and durably.
    ///
    /// False when it cannot be written, and when the class or the file that would be replaced is locked: then everything is
    /// as it was. Thread-safe.
    public func createFile(
        atPath path: String, contents data: Data?, attributes attr: [FileAttributeKey: Any]? = nil
    ) -> Bool {
        do {
            let requested = try ProtectionClass(in: attr)
            var others = attr?.withoutKeyRecord
            others?[.protectionKey] = nil
            let options = requested.map { Data.WritingOptions([.atomic, $0.writingOption]) } ?? .atomic
            let file = WholeFile(path: path)
            guard requested != nil || file.needsProtection else {
                return PlainFoundation.createFile(atPath: path, contents: data, attributes: others, self)
            }
            // Told since the look, it may be Foundation's business after all.
            var isPlainWritten = true
            try file.write(data ?? Data(), options) {
                isPlainWritten = PlainFoundation.createFile(atPath: path, contents: data, attributes: others, self)
            }
            // As Foundation has it: the file is there, whatever becomes of these.
            if let others, !others.isEmpty { try? PlainFoundation.setAttributes(others, ofItemAtPath: path, self) }
            return isPlainWritten
        } catch {
            return false
        }
    }

    /// The content of a file; nil when it cannot be read, and when it is protected and locked. Thread-safe.
    public func contents(atPath path: String) -> Data? {
        guard let item = Item(path) else { return PlainFoundation.contents(atPath: path, self) }
        if !item.isProtected {
            let data = PlainFoundation.contents(atPath: path, self)
            // Somebody may have protected it since: then these were the bytes of a container.
            guard item.hasBecomeProtected else { return data }
        }
        return try? WholeFile(path: path).contents()
    }

    /// Whether two files or trees have the same content, as Foundation's call tells; of protected files their content counts,
    /// not their containers, and a plain file with the same content is equal. False when one cannot be read, and so when one
    /// is locked. Thread-safe.
    public func contentsEqual(atPath path1: String, andPath path2: String) -> Bool {
        guard let first = Item(path1, followsLinks: false), let second = Item(path2, followsLinks: false) else {
            return PlainFoundation.contentsEqual(atPath: path1, andPath: path2, self)
        }
        if first.isDirectory, second.isDirectory {
            guard first.holdsProtectedFiles || second.holdsProtectedFiles else {
                return PlainFoundation.contentsEqual(atPath: path1, andPath: path2, self)
            }
            return directoriesEqual(path1, path2)
        }
        guard first.isProtected || second.isProtected else {
            return PlainFoundation.contentsEqual(atPath: path1, andPath: path2, self)
        }
        guard first.isFile, second.isFile else { return false }
        return (try? Self.filesEqual(first, second)) ?? false
    }

    private func directoriesEqual(_ first: String, _ second: String) -> Bool {
        guard let names = try? contentsOfDirectory(atPath: first),
            let others = try? contentsOfDirectory(atPath: second), Set(names) == Set(others)
        else { return false }
        return names.allSatisfy { contentsEqual(atPath: first + "/" + $0, andPath: second + "/" + $0) }
    }

    private static func equal(
        _ first: UnsafeMutableRawBufferPointer, _ second: UnsafeMutableRawBufferPointer, _ count: Int
    ) -> Bool {
        guard let left = first.baseAddress, let right = second.baseAddress else { return false }
        return memcmp(left, right, count) == 0
    }

    private static func filesEqual(_ first: Item, _ second: Item) throws -> Bool {
        let left = try ContentReader(first)
        let right = try ContentReader(second)
        let size = 256 * 1024
        return try withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { one in
            try withUnsafeTemporaryAllocation(byteCount: size, alignment: 16) { other in
                defer {
                    Wipe.clear(one)
                    Wipe.clear(other)
                }
                while true {
                    let count = try left.read(into: one)
                    guard try right.read(into: other) == count, count == 0 || Self.equal(one, other, count) else {
                        return false
                    }
                    if count < size { return true }
                }
            }
        }
    }
}

extension Item {
    /// True for a regular file, protected or not.
    var isFile: Bool { isProtected || inspection?.state == .plain }

    /// True when this is a directory with a class, or when anything protected lies below it, or cannot be looked at.
    var holdsProtectedFiles: Bool {
        struct Found: Error {}
        do {
            try TreeWalk(crossesFileSystems: true).run(path) { path, visit in
                guard case .success(let visit) = visit, visit.status.kind != .symbolicLink else { return }
                let inspection = try visit.inspection
                switch inspection.state {
                case .plain: return
                case .directory where inspection.protectionClass == nil: return
                case .unsupported where inspection.problem == .unsupported: return
                default: throw Found()
                }
            }
            return false
        } catch {
            return true
        }
    }
}

extension TreeWalk.Visit {
    /// What it is. Where nothing can have a record, what is there is plain.
    var inspection: FileInspection {
        get throws(ProtectionError) {
            do throws(ProtectionError) {
                return try FileInspection.inspect(name, in: directory)
            } catch {
                guard error.reason == .fileSystem else { throw error }
                switch status.kind {
                case .regular: return FileInspection(state: .plain)
                case .directory: return FileInspection(state: .directory)
                default: return FileInspection(state: .unsupported, problem: .unsupported, message: error.message)
                }
            }
        }
    }
}
