import LinuxSystem
import ProtectedFiles
import ProtectionModel
import Synchronization

/// A file for a while, beside the file it belongs to and in its class; gone with this value.
///
/// Read and write it through ``file``, or hand its ``path`` to other code that opens it through this library: to a program
/// that does not it is a container, whose bytes say nothing, and which it would spoil by writing to it. Thread-safe.
public final class TemporaryFile: Sendable {
    /// Where it lies: in the directory of its source, `.candado-temporary-` and 16 digits. Hidden, and on the same file
    /// system, so that it can be renamed to where its content is to stay.
    public let path: FilePath
    /// Open for reading and writing, by the rules of the class.
    public let file: ProtectedFile
    /// The class that it was made in.
    public let protectionClass: ProtectionClass

    private let system: any SystemCalls
    private let isThere = Mutex(true)
    /// Its directory, wherever that is moved to, and whatever directory the process goes to.
    private let directory: Descriptor
    /// Holds the lock that tells others that it is in use.
    private let mark: Descriptor

    fileprivate init(
        _ path: FilePath, in directory: consuming Descriptor, _ file: ProtectedFile,
        _ protectionClass: ProtectionClass, _ mark: consuming Descriptor, _ system: any SystemCalls
    ) {
        self.path = path
        self.directory = directory
        self.file = file
        self.protectionClass = protectionClass
        self.mark = mark
        self.system = system
    }

    deinit { try? remove() }

    /// Closes and removes it now, in every lock state. Removing twice is no error, nor is a name that is gone.
    ///
    /// Throws `system` when the name cannot be removed.
    public func remove() throws(ProtectionError) {
        // Its content is of no interest any more, so neither is whether it became durable.
        try? file.close()
        let isFirst = isThere.withLock { isThere in
            defer { isThere = false }
            return isThere
        }
        guard isFirst else { return }
        do throws(SystemError) {
            try system.unlink(path.lastComponent, in: directory.number)
        } catch {
            guard error.errorNumber != ErrorNumber.noEntry else { return }
            isThere.withLock { $0 = true }
            throw ProtectionError(
                .system(error.errorNumber), "the temporary file cannot be removed", path: path, cause: error)
        }
    }

    // MARK: - Names and marks

    private static let prefix = Array(".candado-temporary-".utf8)
    private static let digits = Array("0123456789abcdef".utf8)
    /// No byte of any content, and none that containers lock.
    private static let markByte: Int64 = 1 << 61

    /// Whether a name is one of a temporary file.
    public static func isTemporaryName(_ name: FilePath) -> Bool {
        name.bytes.count == prefix.count + 16 && name.bytes.starts(with: prefix)
            && name.bytes.dropFirst(prefix.count).allSatisfy(digits.contains)
    }

    fileprivate static func makeName(_ system: any SystemCalls) throws(SystemError) -> FilePath {
        var random: UInt64 = 0
        try withUnsafeMutableBytes(of: &random) { (buffer) throws(SystemError) in try system.random(into: buffer) }
        let suffix = (0..<16).map { digits[Int((random >> (4 * UInt64($0))) & 15)] }
        return FilePath(bytes: prefix + suffix) ?? .current
    }

    /// An open file description that holds the mark; nil when somebody else does, or took the file away. Where locks do
    /// not work it holds none, and nobody removes what he cannot tell to be abandoned.
    fileprivate static func mark(
        _ name: FilePath, in directory: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> Descriptor? {
        guard let number = try openIfThere(name, in: directory, system) else { return nil }
        let file = Descriptor(number, system)
        guard try isMarkable(file.number, system), try system.status(file.number).linkCount > 0 else { return nil }
        return file
    }

    private static func openIfThere(
        _ name: FilePath, in directory: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> Int32? {
        do throws(SystemError) {
            return try system.open(name, in: directory, [.read, .write, .noFollow, .nonBlocking], permissions: 0)
        } catch {
            guard error.errorNumber == ErrorNumber.noEntry else { throw error }
            return nil
        }
    }

    private static func isMarkable(_ descriptor: Int32, _ system: any SystemCalls) throws(SystemError) -> Bool {
        do throws(SystemError) {
            return try system.lock(descriptor, .exclusive, start: markByte, count: 1, wait: false)
        } catch {
            guard ErrorNumber.withoutLocks.contains(error.errorNumber) else { throw error }
            return true
        }
    }

    /// Removes a file that nobody marks as in use. False when somebody does, when that cannot be told, and when the name is
    /// another file's by now.
    fileprivate static func removeIfAbandoned(
        _ name: FilePath, in directory: Int32, _ system: any SystemCalls
    ) throws(SystemError) -> Bool {
        guard let file = try? system.openFile(name, in: directory, [.read, .write, .noFollow, .nonBlocking]),
            (try? system.lock(file.number, .exclusive, start: markByte, count: 1, wait: false)) == true
        else { return false }
        // Held until the name is gone: whoever makes a file and comes to mark it now finds that it was taken away.
        guard let locked = try? system.status(file.number),
            let named = try? system.status(of: name, in: directory, followLinks: false),
            FileIdentity(locked) == FileIdentity(named)
        else { return false }
        try system.unlink(name, in: directory)
        try? file.close()
        return true
    }
}

extension FileProtection {
    /// Makes an empty temporary file beside `source`, in its class: never in a weaker one. For a source without a class, and
    /// for a directory, the class is the one that a new file there gets.
    ///
    /// The class is proved by the source's key where the lock state allows that; while the source is locked it is the one
    /// that the source claims, and one of class A cannot be made then. A process that is killed leaves its temporary files,
    /// still protected; ``removeAbandonedTemporaryFiles(in:)`` takes them away.
    ///
    /// Throws `locked`, and for the source and the new file what ``open(_:for:)`` throws.
    public func temporaryFile(like source: FilePath) throws(ProtectionError) -> TemporaryFile {
        let (directory, wanted) = try placeBeside(source)
        do throws(ProtectionError) {
            return try temporaryFile(in: directory, wanted)
        } catch {
            // The name of a file that was not made says nothing.
            throw error.relocated(to: source)
        }
    }

    private func temporaryFile(
        in directory: FilePath, _ wanted: ProtectionClass?
    ) throws(ProtectionError) -> TemporaryFile {
        // Whoever looks for abandoned ones may come between the making of one and its mark, and take it away.
        for _ in 0..<16 {
            if let file = try makeTemporaryFile(in: directory, wanted) { return file }
        }
        throw ProtectionError(.busy, "somebody takes temporary files away", path: directory)
    }

    /// Nil when somebody took it for an abandoned one.
    private func makeTemporaryFile(
        in directory: FilePath, _ wanted: ProtectionClass?
    ) throws(ProtectionError) -> TemporaryFile? {
        let system = files.system
        do {
            let parent = try system.openFile(directory, [.read, .directory])
            let name = try TemporaryFile.makeName(system)
            let path = directory.appending(name)
            let file = try files.open(name, in: parent.number, for: .creating(wanted))
            do {
                let made = try file.protectionClass
                guard let mark = try TemporaryFile.mark(name, in: parent.number, system) else { return nil }
                return TemporaryFile(path, in: parent, file, made, mark, system)
            } catch {
                try? system.unlink(name, in: parent.number)
                throw error
            }
        } catch {
            throw Self.translate(error, directory)
        }
    }

    /// Runs `body` with a temporary file like ``temporaryFile(like:)``, which is gone afterwards, also when `body` throws.
    ///
    /// Throws what `body` throws, and when the file cannot be made or removed.
    public func withTemporaryFile<Value>(
        like source: FilePath, _ body: (TemporaryFile) throws -> Value
    ) throws -> Value {
        let temporary = try temporaryFile(like: source)
        let outcome = Result { try body(temporary) }
        let removal = Result { () throws(ProtectionError) in try temporary.remove() }
        let value = try outcome.get()
        try removal.get()
        return value
    }

    /// The same with work that suspends.
    public func withTemporaryFile<Value>(
        like source: FilePath, isolation: isolated (any Actor)? = #isolation,
        _ body: (TemporaryFile) async throws -> Value
    ) async throws -> Value {
        let temporary = try temporaryFile(like: source)
        let value: Value
        do {
            value = try await body(temporary)
        } catch {
            try? temporary.remove()
            throw error
        }
        try temporary.remove()
        return value
    }

    /// Removes the temporary files that killed processes left in a directory, and none that is in use. Returns their paths.
    ///
    /// Throws `system` when the directory cannot be read, or one of them cannot be removed; those before it are gone.
    @discardableResult
    public func removeAbandonedTemporaryFiles(in directory: FilePath) throws(ProtectionError) -> [FilePath] {
        let system = files.system
        do throws(SystemError) {
            let opened = try system.openFile(directory, [.read, .directory])
            var removed: [FilePath] = []
            for entry in try system.entries(opened.number) where TemporaryFile.isTemporaryName(entry.name) {
                guard try TemporaryFile.removeIfAbandoned(entry.name, in: opened.number, system) else { continue }
                removed.append(directory.appending(entry.name))
            }
            return removed
        } catch {
            throw ProtectionError(
                .system(error.errorNumber), "temporary files cannot be looked for", path: directory, cause: error)
        }
    }

    /// The directory for files that belong to `source`, and the class they need; nil for the one of a new file there.
    func placeBeside(_ source: FilePath) throws(ProtectionError) -> (directory: FilePath, ProtectionClass?) {
        let status = try status(of: source)
        if status.kind == .directory { return (source, nil) }
        return (source.parent, try provenClass(of: source))
    }

    /// The class of a file, proved by its key; claimed where the file is locked; nil for a plain file.
    func provenClass(of path: FilePath) throws(ProtectionError) -> ProtectionClass? {
        do throws(ProtectionError) {
            return try open(path, for: .reading).protectionClass
        } catch {
            switch error.code {
            case .locked(let claimed): if let claimed { return claimed } else { throw error }
            case .notProtected: return nil
            default: throw error
            }
        }
    }
}
