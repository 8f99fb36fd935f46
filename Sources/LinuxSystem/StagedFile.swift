import Glibc

/// A new file beside the one that it will become: written first, named last, so that nobody ever sees half of it.
///
/// It has no name at all where the file system can do that (`O_TMPFILE`), else a temporary one. Whatever name it still
/// has when this value goes away is removed. Only a crash between two calls can leave a temporary name behind; see
/// ``isTemporaryName(_:)``.
public struct StagedFile: ~Copyable, Sendable {
    /// The file, open for reading and writing, empty at first.
    public let descriptor: Descriptor
    private let directory: Int32
    private var temporaryName: FilePath?
    private var system: any SystemCalls { descriptor.system }

    /// Makes the file in an open directory, which must stay open while this value lives.
    ///
    /// `unnamed` false leaves `O_TMPFILE` aside, so that tests can run that branch on any file system.
    public init(
        in directory: Int32, permissions: UInt32 = 0o600, unnamed: Bool = true, _ system: any SystemCalls
    ) throws(SystemError) {
        self.directory = directory
        if unnamed {
            do {
                descriptor = try system.openFile(
                    .current, in: directory, [.read, .write, .unnamed], permissions: permissions)
                temporaryName = nil
                return
            } catch let error where [EOPNOTSUPP, EISDIR, EINVAL, ENOSYS].contains(error.errorNumber) {
                // This file system has no unnamed files.
            }
        }
        let name = try Self.makeTemporaryName(system)
        do {
            descriptor = try system.openFile(
                name, in: directory, [.read, .write, .create, .exclusive, .noFollow], permissions: permissions)
        } catch {
            // Made, though reported as failed, as a network may have it: then it must not stay.
            if error.errorNumber != EEXIST { try? system.unlink(name, in: directory) }
            throw error
        }
        temporaryName = name
    }

    /// Gives the file its name. `replacing` is `.allowed` to replace what is there, or `.forbidden` to fail with
    /// `EEXIST` then. The name is durable only after an `fsync` of the directory, and the content only when it was
    /// synchronised before this call.
    public consuming func publish(as name: FilePath, replacing: Replacement) throws(SystemError) {
        guard let temporary = temporaryName else {
            if replacing == .forbidden {
                try system.link(descriptor.number, to: name, in: directory)
                return
            }
            // A link never replaces a name: it takes a temporary one, and a rename.
            let fresh = try takeTemporaryName()
            try system.rename(fresh, in: directory, to: name, in: directory, replacing: .allowed)
            temporaryName = nil
            return
        }
        do {
            try system.rename(temporary, in: directory, to: name, in: directory, replacing: replacing)
        } catch let error
            where replacing == .forbidden && [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errorNumber)
        {
            // A file system without RENAME_NOREPLACE: a link does not overwrite either. deinit removes the other name.
            try system.link(descriptor.number, to: name, in: directory)
            return
        }
        temporaryName = nil
    }

    /// Takes the place of the file `name`, which gets the temporary name meanwhile, and removes that file when `check`
    /// finds nothing wrong. When `check` throws, the old file has its name again. What outlives a power cut is as with
    /// ``publish(as:replacing:)``; it may leave the old file under the temporary name.
    ///
    /// Where a file system cannot exchange names, `check` runs before an ordinary replacement.
    public mutating func exchange(with name: FilePath, _ check: () throws -> Void) throws {
        let temporary: FilePath
        if let temporaryName { temporary = temporaryName } else { temporary = try takeTemporaryName() }
        guard try swapNames(temporary, name) else {
            try check()
            try system.rename(temporary, in: directory, to: name, in: directory, replacing: .allowed)
            temporaryName = nil
            return
        }
        // From here on the temporary name is the old file's, and only removed on purpose.
        temporaryName = nil
        let system = self.system
        let directory = self.directory
        let outcome = Result {
            try check()
            try system.unlink(temporary, in: directory)
        }
        if case .failure(let error) = outcome {
            if case .failure = Result(catching: {
                try system.rename(temporary, in: directory, to: name, in: directory, replacing: .required)
            }) {
                // A call that failed is no sign of a writer: then the two are as good as each other, and one may go.
                if error is SystemError { try? system.unlink(temporary, in: directory) }
                throw error
            }
            temporaryName = temporary
            throw error
        }
    }

    /// False where the file system cannot exchange names.
    private func swapNames(_ first: FilePath, _ second: FilePath) throws(SystemError) -> Bool {
        do {
            try system.rename(first, in: directory, to: second, in: directory, replacing: .required)
            return true
        } catch let error where [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.errorNumber) {
            return false
        }
    }

    /// Links an unnamed file to a fresh temporary name.
    private mutating func takeTemporaryName() throws(SystemError) -> FilePath {
        let fresh = try Self.makeTemporaryName(system)
        // Before the call, for a link that is made though reported as failed: deinit then removes it.
        temporaryName = fresh
        do {
            try system.link(descriptor.number, to: fresh, in: directory)
        } catch {
            if error.errorNumber == EEXIST { temporaryName = nil }
            throw error
        }
        return fresh
    }

    deinit {
        if let temporaryName { try? descriptor.system.unlink(temporaryName, in: directory) }
    }

    private static let digits = Array("0123456789abcdef".utf8)

    /// What every temporary name begins with.
    public static let temporaryPrefix = Array(".candado-tmp-".utf8)

    /// Whether a name is one that a crash may have left behind.
    public static func isTemporaryName(_ name: FilePath) -> Bool {
        name.bytes.count == temporaryPrefix.count + 16 && name.bytes.starts(with: temporaryPrefix)
            && name.bytes.dropFirst(temporaryPrefix.count).allSatisfy(Self.digits.contains)
    }

    /// 64 random bits: a clash is no case worth code, and `O_EXCL` and `linkat` fail on one.
    private static func makeTemporaryName(_ system: any SystemCalls) throws(SystemError) -> FilePath {
        var random: UInt64 = 0
        try withUnsafeMutableBytes(of: &random) { (buffer) throws(SystemError) in try system.random(into: buffer) }
        let suffix = (0..<16).map { digits[Int((random >> (4 * UInt64($0))) & 15)] }
        return FilePath(unchecked: temporaryPrefix + suffix)
    }
}
