import KeychainModel
import KeychainStore
import LinuxSystem
import Synchronization

/// The entitlements of the home and of the machine, read again whenever a file is another than before. Thread-safe.
final class EntitlementsSource: Sendable {
    /// What both files say now.
    struct Current: Sendable {
        /// In the order in which they count.
        let files: [Entitlements]
        /// Rises with every change.
        let generation: UInt64
    }

    private struct State {
        var stamps: [FileStatus?]
        var current: Current
    }

    private let files: [EntitlementsFile]
    private let system: any SystemCalls
    private let log: AgentLog
    private let state: Mutex<State>

    init(_ files: [EntitlementsFile], log: AgentLog, system: any SystemCalls) {
        self.files = files
        self.system = system
        self.log = log
        state = Mutex(
            State(
                stamps: [FileStatus?](repeating: nil, count: files.count),
                current: Current(files: [Entitlements](repeating: Entitlements(), count: files.count), generation: 0)))
    }

    var current: Current {
        let stamps = files.map { stamp(of: $0.path) }
        return state.withLock { state in
            guard stamps != state.stamps else { return state.current }
            var read = state.current.files
            for index in files.indices where stamps[index] != state.stamps[index] {
                read[index] = entitlements(in: files[index])
            }
            state.stamps = stamps
            state.current = Current(files: read, generation: state.current.generation + 1)
            return state.current
        }
    }

    /// Its access time is not part of it: reading is no change.
    private func stamp(of path: FilePath) -> FileStatus? {
        guard var status = try? system.status(of: path, in: currentDirectory, followLinks: false) else { return nil }
        status.accessTime = FileTime(seconds: 0, nanoseconds: 0)
        return status
    }

    private func entitlements(in file: EntitlementsFile) -> Entitlements {
        do throws(KeychainError) { return try file.read() } catch {
            log.warning("the entitlements in \(file.path.quoted) do not count: \(error)")
            return Entitlements()
        }
    }
}
