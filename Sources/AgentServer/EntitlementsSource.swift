import KeychainModel
import KeychainStore
import LinuxSystem
import Synchronization

/// The entitlements of the home and of the machine, read again whenever a file, or what it is trusted by, is another than
/// before. Thread-safe: one thread reads a change, and only those that have seen it too wait for that.
final class EntitlementsSource: Sendable {
    /// What both files say now.
    struct Current: Sendable {
        /// In the order in which they count.
        let files: [Entitlements]
        /// Rises with every change.
        let generation: UInt64
    }

    /// What a file's content and the trust in it depend on.
    private struct Stamp: Equatable {
        var file: FileStatus?
        /// Its times and its size change with every other file in it.
        var directory: Directory?

        struct Directory: Equatable {
            let mark: FileMark
            let owner: UInt32
            let permissions: UInt32
        }
    }

    private struct State {
        var stamps: [Stamp?]
        var current: Current
        /// What was wrong with each file, in words that the log has.
        var troubles: [String?]
    }

    private let files: [EntitlementsFile]
    private let system: any SystemCalls
    private let log: AgentLog
    private let state: Mutex<State>
    /// Held by the one that reads.
    private let reading = Mutex(())

    init(_ files: [EntitlementsFile], log: AgentLog, system: any SystemCalls) {
        self.files = files
        self.system = system
        self.log = log
        state = Mutex(
            State(
                stamps: [Stamp?](repeating: nil, count: files.count),
                current: Current(files: [Entitlements](repeating: Entitlements(), count: files.count), generation: 0),
                troubles: [String?](repeating: nil, count: files.count)))
    }

    var current: Current { unchanged() ?? reading.withLock { _ in unchanged() ?? readAgain() } }

    /// Nil when something is another than before.
    private func unchanged() -> Current? {
        let stamps = files.map { stamp(of: $0.path) }
        return state.withLock { $0.stamps == stamps ? $0.current : nil }
    }

    /// Only what has changed. The stamps are from before the reading: what changes meanwhile is read once more.
    private func readAgain() -> Current {
        let stamps: [Stamp?] = files.map { stamp(of: $0.path) }
        var new = state.withLock { $0 }
        var read = new.current.files
        for index in files.indices where stamps[index] != new.stamps[index] {
            new.stamps[index] = stamps[index]
            var trouble: String?
            do throws(KeychainError) { read[index] = try files[index].read() } catch {
                read[index] = Entitlements()
                trouble = "the entitlements in \(files[index].path.quoted) do not count: \(error)"
                // No change of the file may end this: a disk that does not answer, too many open files.
                if error.code == .notAvailable { new.stamps[index] = nil }
            }
            if let trouble, trouble != new.troubles[index] { log.warning(trouble) }
            new.troubles[index] = trouble
        }
        if read != new.current.files {
            new.current = Current(files: read, generation: new.current.generation + 1)
        }
        state.withLock { $0 = new }
        return new.current
    }

    /// Access times are not part of it: reading is no change.
    private func stamp(of path: FilePath) -> Stamp {
        var stamp = Stamp()
        if let directory = try? system.status(of: path.parent, in: currentDirectory, followLinks: true) {
            stamp.directory = Stamp.Directory(
                mark: FileMark(device: directory.device, inode: directory.inode), owner: directory.owner,
                permissions: directory.permissions)
        }
        stamp.file = try? system.status(of: path, in: currentDirectory, followLinks: false)
        stamp.file?.accessTime = FileTime(seconds: 0, nanoseconds: 0)
        return stamp
    }
}
