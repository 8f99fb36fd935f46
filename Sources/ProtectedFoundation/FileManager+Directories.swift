import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Makes a directory, as Foundation's call does; with `.protectionKey` one that gives a class to new files. A directory
    /// that is made inside one with a class, without another class asked for, gives the same class, as on Apple's systems.
    ///
    /// The class is there before the directory has its name, so nothing is ever made inside without it; when it cannot be
    /// given there is no directory. Intermediate directories get it too. With `withIntermediateDirectories`, a directory that
    /// is there already gets the class when it gives none or a weaker one. Thread-safe.
    public func createDirectory(
        at url: URL, withIntermediateDirectories createIntermediates: Bool,
        attributes: [FileAttributeKey: Any]? = nil
    ) throws {
        guard url.isFileURL, !url.path.isEmpty else {
            return try PlainFoundation.createDirectory(
                at: url, withIntermediateDirectories: createIntermediates, attributes: attributes, self)
        }
        try createDirectory(
            atPath: url.path, withIntermediateDirectories: createIntermediates, attributes: attributes)
    }

    /// The same by path.
    public func createDirectory(
        atPath path: String, withIntermediateDirectories createIntermediates: Bool,
        attributes: [FileAttributeKey: Any]? = nil
    ) throws {
        var others = attributes?.withoutKeyRecord
        others?[.protectionKey] = nil
        let made: [FilePath]?
        do throws(ProtectionError) {
            made = try Self.makeDirectories(path, try ProtectionClass(in: attributes), createIntermediates)
        } catch {
            throw CocoaError(error, .writing, path: path)
        }
        guard let made else {
            return try PlainFoundation.createDirectory(
                atPath: path, withIntermediateDirectories: createIntermediates, attributes: others, self)
        }
        guard let others, !others.isEmpty else { return }
        // As Foundation has it: the directories are there, whatever becomes of these.
        for text in made.compactMap(\.text) { try? PlainFoundation.setAttributes(others, ofItemAtPath: text, self) }
    }

    /// Makes a directory with a class, and those that are missing above it. Returns those that were made, or nil when it is
    /// Foundation's business.
    static func makeDirectories(
        _ path: String, _ requested: ProtectionClass?, _ intermediates: Bool
    ) throws(ProtectionError) -> [FilePath]? {
        guard let target = Item(path), let chain = MissingDirectories(target.name) else { return nil }
        guard !chain.missing.isEmpty else {
            // There already. Without intermediates, and in a file's place, that is an error of Foundation's.
            guard let requested, intermediates, target.isDirectory || target.inspection?.problem != nil else {
                return nil
            }
            try raise(target, to: requested)
            return []
        }
        let given = chain.given
        guard requested != nil || given != nil else { return nil }
        // Foundation's error for a missing parent.
        guard intermediates || chain.missing.count == 1 else { return nil }
        let wanted: KeyRecord?
        if let requested {
            let keybag = try Keys.protection.files.keys.keybagIdentifier
            wanted = KeyRecord(directory: requested, keybag: keybag)
        } else {
            wanted = try given?.get()
        }
        guard let wanted else { return nil }
        var made: [FilePath] = []
        for directory in chain.missing {
            do throws(ProtectionError) {
                try NewDirectory.make(directory, wanted)
                made.append(directory)
            } catch {
                // Somebody else was quicker: as good as there from the beginning.
                guard error.code == .alreadyExists, intermediates, let text = directory.text,
                    let present = Item(text), present.isDirectory || present.inspection?.problem != nil
                else { throw error }
                if let requested { try raise(present, to: requested) }
            }
        }
        return made
    }

    private static func raise(_ directory: Item, to requested: ProtectionClass) throws(ProtectionError) {
        if let present = directory.inspection?.protectionClass, !requested.isStronger(than: present) { return }
        try Keys.protection.setProtectionClass(requested, of: directory.path)
    }
}

/// The directories that are not there yet on the way to one.
struct MissingDirectories {
    /// From the top down; the last is the one that was asked for.
    let missing: [FilePath]
    /// The record of the directory around them; nil when it has none, an error when it cannot be read.
    let given: Result<KeyRecord, ProtectionError>?

    /// Nil when the way cannot be told: then Foundation says why.
    init?(_ path: FilePath) {
        var missing: [FilePath] = []
        var here = path.withoutTrailingSlashes
        while true {
            switch Result(catching: { () throws(ProtectionError) in try FileInspection.inspect(here.appending(".")) }) {
            case .success(let inspection):
                if let record = inspection.record {
                    given = .success(record)
                } else if let problem = inspection.problem {
                    given = .failure(
                        ProtectionError(problem, inspection.message ?? "the class cannot be read", path: here))
                } else {
                    given = nil
                }
                self.missing = missing
                return
            case .failure(let error):
                switch error.code {
                case .system(ErrorNumber.noEntry) where here != here.parent: break
                case .system(ErrorNumber.noEntry), .system(ErrorNumber.notDirectory), .system(ErrorNumber.nameTooLong):
                    return nil
                case .unsupported where error.reason == .fileSystem:
                    // Where nothing can have a class.
                    given = nil
                    self.missing = missing
                    return
                default:
                    // What cannot be looked at may have a class.
                    given = .failure(error)
                    self.missing = missing
                    return
                }
                missing.insert(here, at: 0)
                here = here.parent
            }
        }
    }
}

/// A directory that has its class before it has its name.
enum NewDirectory {
    /// Makes it durably. Throws `alreadyExists` when the name is taken, and leaves nothing behind when it fails.
    static func make(_ path: FilePath, _ record: KeyRecord) throws(ProtectionError) {
        HiddenName.sweepOnce(path.parent)
        var isLast = false
        for attempt in 1...HiddenName.attempts where !isLast {
            isLast = try makeOnce(path, record, isLast: attempt == HiddenName.attempts)
        }
    }

    /// False when it has to be done again: somebody else's sweep took the directory before it had its name.
    private static func makeOnce(
        _ path: FilePath, _ record: KeyRecord, isLast: Bool
    ) throws(ProtectionError) -> Bool {
        let system = Keys.systemCalls
        return try ProtectionError.mapping(at: path) { () throws(SystemError) in
            let parent = try system.openFile(path.parent, [.read, .directory])
            let name = try HiddenName.new.make(system)
            try system.makeDirectory(name, in: parent.number, permissions: 0o777)
            do throws(SystemError) {
                let directory = try system.openFile(name, in: parent.number, [.read, .directory, .noFollow])
                try system.setAttribute(
                    KeyRecord.attributeName, of: directory.number, to: record.encoded, replacing: .allowed)
                try system.synchronize(directory.number, dataOnly: false)
                try rename(name, path.lastComponent, in: parent.number, system)
            } catch {
                if !isLast, error.errorNumber == ErrorNumber.noEntry { return false }
                try? system.removeDirectory(name, in: parent.number)
                throw error
            }
            try system.synchronize(parent.number, dataOnly: false)
            return true
        }
    }

    private static func rename(
        _ name: FilePath, _ target: FilePath, in parent: Int32, _ system: any SystemCalls
    ) throws(SystemError) {
        do throws(SystemError) {
            try system.rename(name, in: parent, to: target, in: parent, replacing: .forbidden)
        } catch {
            guard
                [ErrorNumber.invalidArgument, ErrorNumber.noSystemCall, ErrorNumber.notSupported]
                    .contains(error.errorNumber)
            else { throw error }
            // A file system that cannot refuse to replace. What is there has to stay, an empty directory too.
            if (try? system.status(of: target, in: parent, followLinks: false)) != nil {
                throw SystemError(call: "rename", errorNumber: ErrorNumber.exists, path: target)
            }
            try system.rename(name, in: parent, to: target, in: parent, replacing: .allowed)
        }
    }
}

extension FilePath {
    /// `a/b` of `a/b//`.
    var withoutTrailingSlashes: FilePath {
        let parent = self.parent
        return parent == self
            ? self
            : parent == .current && !bytes.starts(with: [0x2E, 0x2F])
                ? lastComponent : parent.appending(lastComponent)
    }
}
