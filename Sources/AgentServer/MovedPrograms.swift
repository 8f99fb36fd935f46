import AgentProtocol
import KeychainModel
import LinuxSystem
import Synchronization

/// Programs that are known by their path alone and find nothing, while a program of the same name, which is not there any
/// more, has items: they were moved, most likely, and would otherwise begin afresh without a word. The log names each pair
/// once, and the status lists the last of them. Thread-safe.
final class MovedPrograms: Sendable {
    typealias Pair = AgentStatus.MovedProgram

    /// The most pairs that are remembered.
    private static let limit = 256

    private let pairs = Mutex<[Pair]>([])
    private let log: AgentLog
    private let system: any SystemCalls

    init(log: AgentLog, system: any SystemCalls) {
        self.log = log
        self.system = system
    }

    /// The last ones, for the status.
    var recent: [Pair] {
        pairs.withLock { pairs in
            pairs.filter { max($0.old.utf8.count, $0.new.utf8.count) <= AgentStatus.longestMoved }
        }.suffix(AgentStatus.maximumMoved)
    }

    /// True for a caller of whom only a path is known, so that moving it makes it another.
    static func canBeMoved(_ caller: Caller) -> Bool {
        caller.accessGroups.first.map { ProgramGroup($0) != nil } ?? false
    }

    /// Looks for items of a place where the caller was before. `groups` are those that have items.
    func look(for caller: Caller, among groups: [String]) {
        guard let group = caller.accessGroups.first, let program = ProgramGroup(group) else { return }
        for other in groups where !other.hasSameBytes(as: group) {
            guard let old = ProgramGroup(other), old.isScript == program.isScript,
                old.path.lastComponent == program.path.lastComponent, isGone(old.path)
            else { continue }
            tell(Pair(old: other, new: group))
        }
    }

    /// The items of a group have gone elsewhere.
    func forget(_ group: String) { pairs.withLock { $0.removeAll { $0.old.hasSameBytes(as: group) } } }

    private func tell(_ pair: Pair) {
        let isNew = pairs.withLock { pairs in
            guard !pairs.contains(pair) else { return false }
            if pairs.count >= Self.limit { pairs.removeFirst() }
            pairs.append(pair)
            return true
        }
        guard isNew else { return }
        let (old, new) = (Self.quoted(pair.old), Self.quoted(pair.new))
        log.warning(
            "\(new) finds no item, and \(old), which is not there any more, has some: if it was moved, "
                + "'candado keychain adopt' gives it its items back: candado keychain adopt \(old) \(new)")
    }

    private static func quoted(_ group: String) -> String { FilePath(group)?.quoted ?? "" }

    private func isGone(_ path: FilePath) -> Bool {
        do throws(SystemError) {
            _ = try system.status(of: path, in: currentDirectory, followLinks: true)
            return false
        } catch { return [ErrorNumber.noEntry, ErrorNumber.notDirectory].contains(error.errorNumber) }
    }
}

/// An access group that is the path of a program, or of a script.
private struct ProgramGroup {
    let path: FilePath
    let isScript: Bool

    init?(_ group: String) {
        isScript = group.hasPrefix(CallerIdentification.script)
        let text = isScript ? String(group.dropFirst(CallerIdentification.script.count)) : group
        guard text.hasPrefix("/"), let path = FilePath(text) else { return nil }
        self.path = path
    }
}
