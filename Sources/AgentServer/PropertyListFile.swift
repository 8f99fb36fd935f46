import Glibc
import KeychainStore
import LinuxSystem
import Synchronization

/// The bundle identifiers in the `Info.plist` files beside executables. Only XML property lists are read, and only whole ones.
/// One that does not count is said in the log, once for each state that it is in. Thread-safe.
final class PropertyListFile: Sendable {
    private static let name: FilePath = "Info.plist"
    private static let maximumSize = 256 * 1024
    /// So many refusals are kept in mind.
    private static let maximumRefusals = 1024

    /// Why one does not count.
    struct Refusal: Error, Equatable {
        let reason: String
    }

    private struct Told: Hashable {
        let path: FilePath
        let reason: String
        /// Nil for one that cannot be looked at.
        let mark: FileMark?
        let changed: FileTime?
    }

    private let system: any SystemCalls
    private let log: AgentLog
    private let told = Mutex<Set<Told>>([])

    init(log: AgentLog, system: any SystemCalls) {
        self.log = log
        self.system = system
    }

    /// Nil where there is no such file beside an executable, where it has no bundle identifier, and where it does not count.
    func bundleIdentifier(beside executable: FilePath) -> String? {
        let path = executable.parent.appending(Self.name)
        do throws(Refusal) { return try identifier(in: path) } catch {
            tell(path, error)
            return nil
        }
    }

    private func tell(_ path: FilePath, _ refusal: Refusal) {
        let status = try? system.status(of: path, in: currentDirectory, followLinks: false)
        let now = Told(
            path: path, reason: refusal.reason, mark: status.map { FileMark(device: $0.device, inode: $0.inode) },
            changed: status?.changeTime)
        let isNew = told.withLock { told in
            if told.count >= Self.maximumRefusals { told = [] }
            return told.insert(now).inserted
        }
        if isNew { log.warning("the bundle identifier in \(path.quoted) does not count: \(refusal.reason)") }
    }

    private func identifier(in path: FilePath) throws(Refusal) -> String? {
        let bytes: [UInt8]
        do throws(SystemError) {
            let file = try system.openFile(path, [.read, .noFollow, .nonBlocking])
            guard let content = try content(file) else {
                throw SystemError(call: "fstat", errorNumber: ErrorNumber.notPermitted, path: path)
            }
            bytes = content
        } catch {
            switch error.errorNumber {
            case ErrorNumber.noEntry, ErrorNumber.notDirectory: return nil
            case ErrorNumber.tooManyLinks: throw Refusal(reason: "it is a symbolic link")
            case ErrorNumber.notPermitted:
                throw Refusal(reason: "it has to be a file of this user or of root that nobody else can write to")
            default: throw Refusal(reason: "it cannot be read: \(error)")
            }
        }
        return try Self.bundleIdentifier(in: bytes)
    }

    /// Nil for a file that is not trusted.
    private func content(_ file: borrowing Descriptor) throws(SystemError) -> [UInt8]? {
        let status = try system.status(file.number)
        guard status.kind == .regular, status.owner == geteuid() || status.owner == 0, status.permissions & 0o022 == 0
        else { return nil }
        // One byte more than is allowed tells that there are too many.
        var bytes = [UInt8](repeating: 0, count: Int(min(status.size, Int64(Self.maximumSize))) + 1)
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in try system.readFully(file.number, into: buffer, at: 0) }
        }.get()
        return Array(bytes.prefix(count))
    }

    /// Nil where the list has none.
    static func bundleIdentifier(in bytes: [UInt8]) throws(Refusal) -> String? {
        guard bytes.count <= maximumSize else { throw Refusal(reason: "it has more than \(maximumSize) bytes") }
        guard !bytes.starts(with: "bplist".utf8) else { throw Refusal(reason: "it is a binary property list") }
        let values: [PropertyListReader.Value]
        do throws(PropertyListReader.Malformed) {
            values = try PropertyListReader.values(of: "CFBundleIdentifier", in: bytes)
        } catch { throw Refusal(reason: "it is no XML property list (at byte \(error.position))") }
        guard values.count <= 1 else { throw Refusal(reason: "it has two bundle identifiers") }
        guard let value = values.first else { return nil }
        guard case .text(let identifier) = value, isIdentifier(identifier) else {
            throw Refusal(reason: "a bundle identifier has letters, digits, hyphens and dots alone")
        }
        guard !Entitlements.isReserved(identifier) else {
            throw Refusal(reason: "'\(identifier)' is the command line's own")
        }
        return identifier
    }

    /// Apple's rule: letters, digits, hyphens and dots.
    private static func isIdentifier(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 155
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E
            }
    }
}
