import LinuxSystem
import ProtectionModel

/// What can be told of a file without any key. Without keys a class is a claim, not a proof.
public struct FileInspection: Sendable, Hashable {
    /// What the file claims to be.
    public enum State: String, Sendable, Hashable, CaseIterable {
        /// It has a key record.
        case protected
        /// It has none, and is no container.
        case plain
        /// A directory; its class, if it has one, is for new files inside.
        case directory
        /// The record or the header does not decode.
        case damaged
        /// Its record belongs to another keybag than the one asked about.
        case foreign
        /// Neither regular file nor directory, or a version or a file system that cannot be dealt with.
        case unsupported
    }

    public var state: State
    /// The class that counts, of a protected file or a directory.
    public var protectionClass: ProtectionClass?
    /// The record that counts.
    public var record: KeyRecord?
    /// Where it was found. ``RecordPlace/attribute`` when the header was not looked at.
    public var place: RecordPlace?
    /// Why the state is damaged or unsupported.
    public var problem: ProtectionError.Code?
    /// The sentence for ``problem``.
    public var message: String?

    public init(
        state: State, protectionClass: ProtectionClass? = nil, record: KeyRecord? = nil, place: RecordPlace? = nil,
        problem: ProtectionError.Code? = nil, message: String? = nil
    ) {
        self.state = state
        self.protectionClass = protectionClass
        self.record = record
        self.place = place
        self.problem = problem
        self.message = message
    }

    init(_ error: ProtectionError) {
        switch error.code {
        case .notProtected: self.init(state: .plain)
        case .needsNewerVersion, .unsupported:
            self.init(state: .unsupported, problem: error.code, message: error.message)
        default: self.init(state: .damaged, problem: error.code, message: error.message)
        }
    }

    /// The inspection of a decoded record. `keybag` is the one asked about, nil for any.
    init(_ record: KeyRecord, place: RecordPlace, isDirectory: Bool, keybag: KeybagIdentifier?) {
        if isDirectory {
            guard record.isDirectory else {
                self.init(
                    state: .damaged, problem: .damaged(.record), message: "the directory has the key record of a file")
                return
            }
            self.init(state: .directory, protectionClass: record.protectionClass, record: record, place: .attribute)
            return
        }
        let isForeign = keybag.map { $0 != record.keybag } ?? false
        self.init(
            state: isForeign ? .foreign : .protected, protectionClass: record.protectionClass, record: record,
            place: place)
    }

    /// Looks at the file at a path, which may be relative to an open directory. Symbolic links are not followed.
    ///
    /// A file with a good attribute costs one system call; its content is read only when the attribute is missing or
    /// malformed, or when `comparingHeaders` asks for it. Throws when there is no such file.
    public static func inspect(
        _ path: FilePath, in directory: Int32 = currentDirectory, keybag: KeybagIdentifier? = nil,
        comparingHeaders: Bool = false, _ system: any SystemCalls = LinuxSystemCalls.shared
    ) throws(ProtectionError) -> FileInspection {
        try ProtectionError.mapping(at: path) {
            if !comparingHeaders {
                do {
                    let record: KeyRecord? = try withUnsafeTemporaryAllocation(byteCount: 256, alignment: 16) {
                        buffer in
                        guard
                            let count = try system.attribute(
                                KeyRecord.attributeName, of: path, in: directory, into: buffer)
                        else { return nil }
                        return try? KeyRecord(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    }
                    if let record, !record.isDirectory {
                        return FileInspection(record, place: .attribute, isDirectory: false, keybag: keybag)
                    }
                } catch let error as SystemError where error.errorNumber == ErrorNumber.tooBig {
                    // Longer than any record: the slow way tells what it is.
                }
            }
            return try inspectContent(path, in: directory, keybag: keybag, system)
        }
    }

    /// Looks at both places of the record.
    private static func inspectContent(
        _ path: FilePath, in directory: Int32, keybag: KeybagIdentifier?, _ system: any SystemCalls
    ) throws -> FileInspection {
        let status = try system.status(of: path, in: directory, followLinks: false)
        switch status.kind {
        case .symbolicLink, .special:
            return FileInspection(
                state: .unsupported, problem: .unsupported, message: "neither a regular file nor a directory")
        case .directory:
            let descriptor = try system.openFile(path, in: directory, [.read, .directory, .noFollow])
            switch try StoredRecord.attribute(of: descriptor.number, system) {
            case .missing: return FileInspection(state: .directory)
            case .bad(let error): return FileInspection(error)
            case .good(let record): return FileInspection(record, place: .attribute, isDirectory: true, keybag: nil)
            }
        case .regular:
            let descriptor = try system.openFile(path, in: directory, [.read, .noFollow, .nonBlocking])
            do {
                let stored = try StoredRecord(descriptor.number, system)
                guard let first = try stored.candidates().first else { return FileInspection(state: .plain) }
                return FileInspection(first.record, place: first.place, isDirectory: false, keybag: keybag)
            } catch let error as ProtectionError {
                return FileInspection(error)
            }
        }
    }
}
