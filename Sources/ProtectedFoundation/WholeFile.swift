import FileProtection
import Foundation
import PlainFoundation
import Synchronization

/// A file that a call of Foundation reads or writes as a whole: what is protected is done here, all else is left to
/// Foundation's own call.
struct WholeFile {
    /// Nil for what has no path: then Foundation says what is wrong with it.
    private let item: Item?
    /// For errors, where a path takes longer to make than a small file to read.
    private let place: Place

    private enum Place {
        case url(URL)
        case path(String)
    }

    /// Names a file by a URL. `anyScheme` is for calls of Foundation that take the path of every URL.
    init(_ url: URL, anyScheme: Bool = false) {
        item = anyScheme ? Item(pathOf: url) : Item(url)
        place = .url(url)
    }

    /// Names a file by a path.
    init(path: String) {
        item = Item(path)
        place = .path(path)
    }

    private func cocoaError(_ error: ProtectionError, _ direction: CocoaError.Direction) -> CocoaError {
        switch place {
        case .url(let url): CocoaError(error, direction, path: url.path, url: url)
        case .path(let path): CocoaError(error, direction, path: path)
        }
    }

    // MARK: Reading

    /// Reads with `plain`, which is Foundation's call, or reads what is protected and hands it to `make`.
    func read<Result>(_ plain: () throws -> Result, _ make: (Data) throws -> Result) throws -> Result {
        if let data = try contents() { return try make(data) }
        let result = Swift.Result { try plain() }
        guard let item else { return try result.get() }
        // What Foundation reads all the same, though it could not be looked at, may be the bytes of a container.
        if let problem = item.problem, case .success = result { throw cocoaError(problem, .reading) }
        // Somebody may have protected it since: then these were the bytes of a container.
        if item.hasBecomeProtected, item.problem == nil, let data = try contents(item) { return try make(data) }
        return try result.get()
    }

    /// The content of a protected file; nil when it is no protected file.
    func contents() throws -> Data? {
        guard let item, item.isProtected else { return nil }
        return try contents(item)
    }

    /// For initialisers that cannot go back once Foundation's has run: throws when somebody has protected the file since,
    /// and when it could not be looked at.
    func requirePlain() throws {
        guard let item, item.hasBecomeProtected || item.problem != nil else { return }
        let error = item.problem ?? ProtectionError(.busy, "the file was protected while it was read", path: item.path)
        throw cocoaError(error, .reading)
    }

    /// Nil when somebody has made it plain since.
    private func contents(_ item: Item, isCleared: Bool = false) throws -> Data? {
        do throws(ProtectionError) {
            return try Self.contents(of: item.path, try Keys.protection.files, isCleared: isCleared)
        } catch {
            if error.code == .notProtected { return nil }
            throw cocoaError(error, .reading)
        }
    }

    private static func contents(
        of path: FilePath, _ files: ProtectedFileSystem, isCleared: Bool
    ) throws(ProtectionError) -> Data {
        // The container is a little longer than its content.
        let status = try? files.system.status(of: path, in: currentDirectory, followLinks: false)
        let memory = ContentMemory(capacity: Int(clamping: status?.size ?? 0))
        try files.read(path) { try memory.append($0) }
        return memory.take(isCleared: isCleared)
    }

    /// The content for a stream, which cannot be locked any more; nil when it must not have it. It is cleared when it goes.
    func streamContents() -> Data? {
        guard let item, let claimed = item.inspection?.protectionClass, claimed != .complete else { return nil }
        guard let data = (try? contents(item, isCleared: true)) ?? nil else { return nil }
        // What it claimed is no proof, and it may have been raised since.
        guard let file = try? Keys.protection.open(item.path, for: .reading) else { return nil }
        return (try? file.protectionClass) ?? .complete == .complete ? nil : data
    }

    /// True for a container, whole or damaged.
    var isProtected: Bool { item?.isProtected ?? false }

    /// True when the end of a link cannot be found, though Foundation may find it: it may be a container.
    var isHidden: Bool { item?.problem?.reason == .symbolicLink }

    // MARK: Writing

    /// How Foundation's calls differ in what they do beside writing.
    enum PlainCalls {
        /// Those of `Data` and of texts.
        case data
        /// Those of `NSData`: they give a file the permissions that its name had before, a link's too, and all permissions
        /// to a new one that is written atomically. Their errors name no file.
        case older
        /// Those of archives: all permissions, also in an old file's place.
        case archive
    }

    /// True when whatever is written here has to be protected, or when that cannot be told.
    var needsProtection: Bool {
        guard let item else { return false }
        return item.needsProtection(nil) || item.classAroundLink != .none
    }

    /// Writes what has to be protected; all else goes to Foundation's call, but never into a container that has come since
    /// the file was looked at. `plain` is called where Foundation's own call does it, or says what is wrong.
    func write(
        _ data: Data, _ options: Data.WritingOptions, like calls: PlainCalls = .data, _ plain: () throws -> Void
    ) throws {
        guard var item else { return try plain() }
        for _ in 0..<20 {
            do throws(ProtectionError) {
                if try write(data, to: item, options) { return }
            } catch {
                throw cocoaError(error, .writing)
            }
            // Foundation makes a new file then, or none.
            if options.contains(.withoutOverwriting) { return try plain() }
            switch try writePlain(data, to: item, options, calls) {
            case .written: return
            case .foundations: return try plain()
            case .changed: item = item.lookedAtAgain
            }
        }
        let error = ProtectionError(.busy, "the file was protected and made plain time and again", path: item.path)
        throw cocoaError(error, .writing)
    }

    private func writePlain(
        _ data: Data, to item: Item, _ options: Data.WritingOptions, _ calls: PlainCalls
    ) throws -> AtomicPlainFile.Outcome {
        if options.contains(.atomic) {
            do {
                return try AtomicPlainFile.write(item.name, like: calls) { try writePlain(data, at: $0, calls) }
            } catch let error as ProtectionError {
                throw cocoaError(error, .writing)
            }
        }
        switch PinnedFile.open(item) {
        case .refused: return .foundations
        case .protected: return .changed
        case .pinned(let file):
            try withExtendedLifetime(file) {
                let permissions = calls == .older ? Self.permissions(of: item.name) : nil
                try writePlain(data, at: file.path, calls)
                if let permissions { try? file.changePermissions(to: permissions) }
            }
            return .written
        }
    }

    private static func permissions(of name: FilePath) -> UInt32? {
        try? LinuxSystemCalls.shared.status(of: name, in: currentDirectory, followLinks: false).permissions
    }

    /// Has Foundation write to a file that is open; errors name the file as the caller does.
    private func writePlain(_ data: Data, at path: String, _ calls: PlainCalls) throws {
        do {
            try PlainFoundation.write(data, to: URL(fileURLWithPath: path), [])
        } catch let error as CocoaError {
            var information = error.userInfo
            switch place {
            case _ where calls == .older:
                information[NSFilePathErrorKey] = nil
                information[NSURLErrorKey] = nil
            case .url(let url):
                information[NSFilePathErrorKey] = url.path
                information[NSURLErrorKey] = url
            case .path(let path):
                information[NSFilePathErrorKey] = path
                information[NSURLErrorKey] = URL(fileURLWithPath: path)
            }
            throw CocoaError(error.code, userInfo: information)
        }
    }

    /// False when it is Foundation's business.
    private func write(
        _ data: Data, to item: Item, _ options: Data.WritingOptions
    ) throws(ProtectionError) -> Bool {
        let requested = try ProtectionClass(options)
        if let problem = item.problem { throw problem }
        var wanted = requested
        if requested == nil, !item.isProtected {
            var given = item.givenClass
            // Foundation's atomic call would put its new file in the link's place.
            if given == .none, options.contains(.atomic) { given = item.classAroundLink }
            switch given {
            case .none: return false
            case .known(let protectionClass): wanted = protectionClass
            case .unreadable: try Self.requireReadableClass(around: item)
            }
        }
        if options.contains(.withoutOverwriting), item.inspection != nil {
            throw ProtectionError(.alreadyExists, "the file exists already", path: item.path)
        }
        try Self.write(
            data, to: item.path, wanted, replacing: !options.contains(.withoutOverwriting), try Keys.protection.files)
        return true
    }

    /// Throws why the class that a directory gives cannot be told.
    private static func requireReadableClass(around item: Item) throws(ProtectionError) {
        for directory in [item.path.parent, item.name.parent] {
            let inspection = try FileInspection.inspect(directory.appending("."))
            if let problem = inspection.problem {
                throw ProtectionError(problem, inspection.message ?? "the class cannot be read", path: directory)
            }
        }
        throw ProtectionError(.damaged(.record), "the class of the directory cannot be read", path: item.path.parent)
    }

    private static func write(
        _ data: Data, to path: FilePath, _ protectionClass: ProtectionClass?, replacing: Bool,
        _ files: ProtectedFileSystem
    ) throws(ProtectionError) {
        let result: Result<Void, ProtectionError> = WriteTurns.inTurn(path) {
            data.withUnsafeBytes { bytes in
                let source = BorrowedContent(bytes)
                return Result { () throws(ProtectionError) in
                    try write(source, to: path, protectionClass, replacing: replacing, files)
                }
            }
        }
        try result.get()
    }

    /// As with Foundation the last writer wins: one that another came before begins again, and looks again whether what is
    /// there now may be replaced.
    private static func write(
        _ source: BorrowedContent, to path: FilePath, _ protectionClass: ProtectionClass?, replacing: Bool,
        _ files: ProtectedFileSystem
    ) throws(ProtectionError) {
        func attempt() -> Result<Void, ProtectionError> {
            source.rewind()
            return Result { () throws(ProtectionError) in
                try files.write(to: path, class: protectionClass, replacing: replacing) { source.next(into: $0) }
            }
        }
        func isLost(_ result: Result<Void, ProtectionError>) -> Bool {
            guard replacing, case .failure(let error) = result else { return false }
            // A file that was replaced between being opened and looked at has no name, and so not one name.
            return error.code == .busy || error.code == .alreadyExists || error.reason == .hardLinks
        }
        var result = attempt()
        if isLost(result) {
            // One at a time, so that writers who name the file otherwise, and so had another turn, run out.
            WriteTurns.again {
                for _ in 0..<20 where isLost(result) { result = attempt() }
            }
        }
        try result.get()
    }
}

/// Writes of this process to one path come one after the other. Thread-safe.
private enum WriteTurns {
    private final class Turn: Sendable {
        let lock = Mutex(())
    }

    /// Paths share them, by chance: enough that this seldom matters.
    private static let turns = (0..<64).map { _ in Turn() }

    private static let second = Turn()

    static func again(_ body: () -> Void) { second.lock.withLock { _ in body() } }

    static func inTurn<Result>(_ path: FilePath, _ body: () -> sending Result) -> sending Result {
        turns[Int(UInt(bitPattern: path.hashValue) % UInt(turns.count))].lock.withLock { _ in body() }
    }
}

/// Bytes that the caller keeps in place while they are written: nothing of them is copied but into the buffers that they
/// are sealed in.
private final class BorrowedContent: @unchecked Sendable {
    private let bytes: UnsafeRawBufferPointer
    private let position = Mutex(0)

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    func rewind() { position.withLock { $0 = 0 } }

    func next(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        position.withLock { position in
            let part = bytes[position..<min(position + buffer.count, bytes.count)]
            buffer.copyBytes(from: part)
            position += part.count
            return part.count
        }
    }
}
