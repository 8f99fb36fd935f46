import LinuxSystem
import ProtectionModel
import Synchronization

/// A plain copy that an export could not take back.
///
/// The cause of the error of an export that failed and left something: show the path to whoever asked for the export.
public struct PlainCopyLeft: Error, Sendable, CustomStringConvertible {
    /// Where it lies.
    public let path: FilePath
    /// True when `path` is its directory: it may be there, under its own name or another, and that cannot be told.
    public let isDirectory: Bool
    /// What went wrong with the export.
    public let reason: ProtectionError

    public var description: String {
        isDirectory
            ? "a plain copy may be left in \(path.quoted)"
            : "a plain copy is left at \(path.quoted): it cannot be removed"
    }
}

/// A plain file on its way to its name, which must be free. The one place where this library writes plaintext.
final class PlainCopy {
    private let path: FilePath
    private let system: any SystemCalls
    private let parent: Descriptor
    /// The file, once more: giving it its name uses up the other descriptor.
    private var file: Descriptor?

    private init(_ path: FilePath, _ system: any SystemCalls) throws(SystemError) {
        self.path = path
        self.system = system
        parent = try system.openFile(path.parent, [.read, .directory])
    }

    /// Makes a durable file with permissions 0600 from what `fill` writes to a descriptor. `check` is asked with the open
    /// directory before it gets its name.
    ///
    /// Throws what went wrong; then the file is gone, or it is empty, or the error's cause is ``PlainCopyLeft``.
    static func make(
        at path: FilePath, _ system: any SystemCalls, fill: (Int32) throws -> Void, check: (Int32) throws -> Void
    ) throws(ProtectionError) {
        let copy: PlainCopy
        do {
            copy = try PlainCopy(path, system)
        } catch { throw FileProtection.translate(error, path) }
        do {
            try copy.make(fill, check)
        } catch { throw copy.takeBack(FileProtection.translate(error, path)) }
    }

    private func make(_ fill: (Int32) throws -> Void, _ check: (Int32) throws -> Void) throws {
        let staged = try StagedFile(in: parent.number, permissions: 0o600, system)
        let number = staged.descriptor.number
        file = Descriptor(try system.duplicate(number), system)
        try system.changePermissions(number, to: 0o600)
        try fill(number)
        try system.synchronize(number, dataOnly: false)
        try check(parent.number)
        try staged.publish(as: path.lastComponent, replacing: .forbidden)
        try system.synchronize(parent.number, dataOnly: false)
    }

    /// Empties the file and takes its names away. Returns the error to throw.
    private func takeBack(_ reason: ProtectionError) -> ProtectionError {
        // Without it nothing was written yet.
        guard let number = file?.number else { return reason }
        // First of all: whatever name it keeps, nothing is left under that.
        let isEmpty = succeeds { () throws(SystemError) in try system.truncate(number, to: 0) }
        var left: PlainCopyLeft?
        do throws(SystemError) {
            for name in try names(of: number) {
                let isRemoved = succeeds { () throws(SystemError) in try system.unlink(name, in: parent.number) }
                guard !isRemoved else { continue }
                left = PlainCopyLeft(path: path.parent.appending(name), isDirectory: false, reason: reason)
            }
            if left == nil, try system.status(number).linkCount > 0 { left = somewhere(reason) }
        } catch { left = somewhere(reason) }
        // Whether that outlives a power cut nobody can promise after a failure, but it is tried.
        _ = succeeds { () throws(SystemError) in try system.synchronize(number, dataOnly: false) }
        _ = succeeds { () throws(SystemError) in try system.synchronize(parent.number, dataOnly: false) }
        guard let left, !isEmpty else { return reason }
        return ProtectionError(reason.code, "\(reason.message); \(left)", path: reason.path, cause: left)
    }

    private func somewhere(_ reason: ProtectionError) -> PlainCopyLeft {
        PlainCopyLeft(path: path.parent, isDirectory: true, reason: reason)
    }

    /// The names that the file has: its own, and where the file system knows no unnamed files a temporary one.
    private func names(of number: Int32) throws(SystemError) -> [FilePath] {
        let status = try system.status(number)
        if status.linkCount == 0 { return [] }
        var names: [FilePath] = []
        var candidates = [path.lastComponent]
        for entry in try system.entries(parent.number) where StagedFile.isTemporaryName(entry.name) {
            candidates.append(entry.name)
        }
        for name in candidates {
            do throws(SystemError) {
                let found = try system.status(of: name, in: parent.number, followLinks: false)
                if FileIdentity(found) == FileIdentity(status) { names.append(name) }
            } catch {
                guard error.errorNumber == ErrorNumber.noEntry else { throw error }
            }
        }
        return names
    }

    private func succeeds(_ body: () throws(SystemError) -> Void) -> Bool {
        do throws(SystemError) {
            try body()
            return true
        } catch { return false }
    }
}
