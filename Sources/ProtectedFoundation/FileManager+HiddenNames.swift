import FileProtection
import Foundation
import Synchronization

/// Names that items have for a moment while something is done with them, and that a kill can leave behind.
enum HiddenName: String, CaseIterable {
    /// An empty directory before it has its own name.
    case new = ".candado-new-"
    /// What was replaced, and is being removed.
    case gone = ".candado-gone-"
    /// A directory with a copy that is not complete yet. Whoever makes it holds a lock on the directory.
    case copy = ".candado-copy-"
    /// An item that waits while another takes its name, where a file system cannot exchange names. Never swept: it may be
    /// the only one.
    case original = ".candado-original-"

    /// How often something is begun anew that somebody else's sweep took.
    static let attempts = 8

    /// A fresh name.
    func make(_ system: any SystemCalls) throws(SystemError) -> FilePath {
        var random: UInt64 = 0
        try withUnsafeMutableBytes(of: &random) { (buffer) throws(SystemError) in try system.random(into: buffer) }
        let digits = String(random, radix: 16)
        let name = rawValue + String(repeating: "0", count: 16 - digits.count) + digits
        guard let path = FilePath(name) else {
            throw SystemError(call: "getrandom", errorNumber: ErrorNumber.invalidArgument)
        }
        return path
    }

    /// A fresh name in a directory.
    func make(in directory: FilePath) throws(ProtectionError) -> FilePath {
        let name = try ProtectionError.mapping(at: directory) { () throws(SystemError) in
            try make(Keys.systemCalls)
        }
        return directory.appending(name)
    }

    /// Which of them a name is; nil for every other.
    init?(_ name: FilePath) {
        let digits = Array("0123456789abcdef".utf8)
        for kind in Self.allCases where name.bytes.starts(with: Array(kind.rawValue.utf8)) {
            let rest = name.bytes.dropFirst(kind.rawValue.utf8.count)
            guard rest.count == 16, rest.allSatisfy(digits.contains) else { return nil }
            self = kind
            return
        }
        return nil
    }

    /// Gives an item that is to be removed such a name in a directory of the same file system.
    static func setAside(_ item: FilePath, in directory: FilePath) throws(ProtectionError) -> FilePath {
        let name = try gone.make(in: directory)
        guard try FileManager.rename(item, name, replacing: false) else {
            throw ProtectionError(.system(EXDEV), "the item lies on another file system", path: item)
        }
        return name
    }

    // MARK: Sweeping

    /// Directories that were swept by this process.
    private static let swept = Mutex<Set<FileIdentity>>([])

    /// Sweeps a directory that this process has not swept yet.
    static func sweepOnce(_ directory: FilePath) {
        let status = try? Keys.systemCalls.status(of: directory, in: currentDirectory, followLinks: true)
        guard let status else { return }
        let isFirst = swept.withLock { swept in
            if swept.count > 4096 { swept = [] }
            return swept.insert(FileIdentity(status)).inserted
        }
        if isFirst { sweep(directory) }
    }

    /// Removes what a kill left in a directory, if it is this user's own. What cannot be removed stays, and harms nothing.
    static func sweep(_ directory: FilePath) {
        let system = Keys.systemCalls
        guard let opened = try? system.openFile(directory, [.read, .directory]),
            let entries = try? system.entries(opened.number)
        else { return }
        for entry in entries {
            guard let kind = HiddenName(entry.name),
                let status = try? system.status(of: entry.name, in: opened.number, followLinks: false),
                status.owner == geteuid()
            else { continue }
            let path = directory.appending(entry.name)
            switch kind {
            // With something in it, it is none that was being made.
            case .new: try? system.removeDirectory(entry.name, in: opened.number)
            case .gone: removeAll(path)
            case .copy where !isInUse(entry.name, opened.number, system): removeAll(path)
            case .copy, .original: continue
            }
        }
    }

    private static func removeAll(_ path: FilePath) {
        if let text = path.text { try? FileManager().removeItem(atPath: text) }
    }

    /// Also true when that cannot be told.
    private static func isInUse(_ name: FilePath, _ parent: Int32, _ system: any SystemCalls) -> Bool {
        guard let copy = try? system.openFile(name, in: parent, [.read, .directory, .noFollow]) else { return true }
        return (try? system.isLocked(copy.number, start: 0, count: 1)) ?? true
    }
}

extension FilePath {
    /// True when something has this name, or when that cannot be told.
    var isThere: Bool {
        do throws(SystemError) {
            _ = try Keys.systemCalls.status(of: self, in: currentDirectory, followLinks: false)
            return true
        } catch {
            return error.errorNumber != ErrorNumber.noEntry
        }
    }

    /// Removes a file if it still is that one.
    func removeFile(_ identity: FileIdentity, _ system: any SystemCalls) {
        guard let now = try? system.status(of: self, in: currentDirectory, followLinks: false),
            FileIdentity(now) == identity
        else { return }
        try? system.unlink(self, in: currentDirectory)
    }
}
