import FileProtection
import Foundation
import PlainFoundation

/// A plain file that takes the place of another in one step, as Foundation's atomic calls have it; but never that of a
/// container, which a plain rename would replace when it came between the look and the rename.
///
/// The two names are exchanged, and what came out is looked at. A container gets its name back.
struct AtomicPlainFile {
    /// What came of it.
    enum Outcome {
        case written
        /// What is there has to be looked at again.
        case changed
        /// Foundation's own call does it, or says what is wrong.
        case foundations
    }

    private let name: FilePath
    private let temporary: FilePath
    /// Names only, so that no permission to read is needed.
    private let directory: Int32
    private let system = LinuxSystemCalls.shared

    /// Writes by `write`, which gets the path for Foundation's call, and throws what it throws: then nothing is changed.
    static func write(
        _ place: FilePath, like calls: WholeFile.PlainCalls, _ write: (String) throws -> Void
    ) throws -> Outcome {
        let name = place.lastComponent
        guard place.bytes.last != UInt8(ascii: "/"), name != ".", name != ".." else { return .foundations }
        guard let directory = open(place.parent, in: currentDirectory, [.pathOnly, .directory]),
            let temporary = FilePath(".dat.nosync\(String(UInt64.random(in: 0 ... .max), radix: 16))")
        else { return .foundations }
        let holder = PinnedFile(own: Descriptor(directory, LinuxSystemCalls.shared))
        return try withExtendedLifetime(holder) {
            guard let number = open(temporary, in: directory, [.write, .create, .exclusive, .noFollow]) else {
                return .foundations
            }
            let file = PinnedFile(own: Descriptor(number, LinuxSystemCalls.shared))
            let atomic = AtomicPlainFile(name: name, temporary: temporary, directory: directory)
            do {
                try write(file.path)
                if calls != .data {
                    let before = try? LinuxSystemCalls.shared.status(of: name, in: directory, followLinks: false)
                    let kept = calls == .older ? before?.permissions : nil
                    try? file.changePermissions(to: kept ?? 0o666)
                }
                return try atomic.take(file)
            } catch {
                atomic.remove(ifStill: file)
                throw error
            }
        }
    }

    private static func open(_ path: FilePath, in directory: Int32, _ options: OpenOptions) -> Int32? {
        try? LinuxSystemCalls.shared.open(path, in: directory, options, permissions: 0o666)
    }

    /// Gives the file its name.
    private func take(_ file: PinnedFile) throws -> Outcome {
        // Others may make and remove the name meanwhile.
        for _ in 0..<20 {
            switch kind {
            case .success(nil):
                switch rename(.forbidden) {
                case nil: return .written
                case ErrorNumber.exists?: continue
                default: break
                }
            case .success(.regular?), .success(.symbolicLink?), .success(.special?):
                switch rename(.required) {
                case nil: return try removeOld(file)
                case ErrorNumber.noEntry?: continue
                default: break
                }
            case .success(.directory?), .failure: break
            }
            break
        }
        remove(ifStill: file)
        return .foundations
    }

    /// What lies at the name; nil for nothing.
    private var kind: Result<FileStatus.Kind?, SystemError> {
        do throws(SystemError) {
            return .success(try system.status(of: name, in: directory, followLinks: false).kind)
        } catch {
            return error.errorNumber == ErrorNumber.noEntry ? .success(nil) : .failure(error)
        }
    }

    /// Nil, or the number of the error.
    private func rename(_ replacing: Replacement) -> Int32? {
        do throws(SystemError) {
            try system.rename(temporary, in: directory, to: name, in: directory, replacing: replacing)
            return nil
        } catch {
            return error.errorNumber
        }
    }

    /// The temporary name is that of the old file now.
    private func removeOld(_ file: PinnedFile) throws -> Outcome {
        let mayGo: Bool
        switch try? FileInspection.inspect(temporary, in: directory) {
        case let old?: mayGo = old.state == .plain || (old.state == .unsupported && old.problem != .needsNewerVersion)
        case nil: mayGo = false
        }
        if mayGo, (try? system.unlink(temporary, in: directory)) != nil { return .written }
        var back = rename(.required)
        // Somebody removed the new file: the old one was not his to remove.
        if back == ErrorNumber.noEntry { back = rename(.forbidden) }
        guard back == nil else {
            throw ProtectionError(
                .busy, "the file that was to be replaced is kept as \(temporary.quoted)", path: name)
        }
        if isOther(than: file) {
            // Somebody replaced the new file: his is the last one, and the old one is kept beside it.
            _ = rename(.required)
            throw ProtectionError(
                .busy, "the file that was to be replaced is kept as \(temporary.quoted)", path: name)
        }
        remove(ifStill: file)
        return .changed
    }

    /// Whether the temporary name is another file's.
    private func isOther(than file: PinnedFile) -> Bool {
        guard let found = try? system.status(of: temporary, in: directory, followLinks: false) else { return false }
        guard let own = try? file.status else { return true }
        return FileIdentity(found) != FileIdentity(own)
    }

    private func remove(ifStill file: PinnedFile) {
        guard let found = try? system.status(of: temporary, in: directory, followLinks: false),
            let own = try? file.status, FileIdentity(found) == FileIdentity(own)
        else { return }
        // Nobody is left to hear of an error: the name begins like Foundation's own temporary ones.
        try? system.unlink(temporary, in: directory)
    }
}
