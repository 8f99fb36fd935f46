import KeychainModel
import KeychainStore
import LinuxSystem
import Synchronization

/// Tells clients of the keychain apart: `docs/access-groups.md`. Thread-safe.
final class CallerIdentification: Sendable {
    private let system: any SystemCalls
    private let log: AgentLog
    private let entitlements: EntitlementsSource
    private let propertyLists: PropertyListFile
    /// The mount namespace of this process.
    private let namespace: FileMark?
    /// The project's command line beside this process's own executable.
    private let administrator: FilePath?
    /// What it was when the first process was looked at, and the directory that it was in. Not before: an agent that is asked
    /// for no item looks at nothing outside of its home.
    private let firstAdministrator = Mutex<(file: FileMark?, directory: FileMark?)?>(nil)

    /// `administrator` nil: the `candado` beside this process's own executable.
    init(
        _ entitlements: [EntitlementsFile], administrator: FilePath? = nil, log: AgentLog, system: any SystemCalls
    ) {
        self.log = log
        self.system = system
        self.entitlements = EntitlementsSource(entitlements, log: log, system: system)
        propertyLists = PropertyListFile(log: log, system: system)
        namespace = FileMark("/proc/self/ns/mnt", system)
        self.administrator = administrator ?? ProcessFacts.ownExecutable?.parent.appending("candado")
    }

    /// Looks at a process. A caller without any group is one that cannot be told from others: nothing is allowed to it.
    func identify(_ peer: PeerProcess) -> CallerIdentity {
        let current = entitlements.current
        let unit = Self.unit(of: peer.number, system)
        guard peer.number > 0, let seen = SeenExecutable(of: peer.number, system), seen.mark == peer.mark else {
            return unknown(peer, unit, current)
        }
        let caller = caller(peer.number, seen, unit, current)
        // All of it was one process, and one program.
        guard peer.isThere, FileMark(SeenExecutable.link(peer.number), system) == seen.mark else {
            return unknown(peer, unit, current)
        }
        return CallerIdentity(
            caller: caller, executable: seen.path, mark: seen.mark, unit: unit, entitlements: current.generation)
    }

    private func unknown(
        _ peer: PeerProcess, _ unit: String, _ current: EntitlementsSource.Current
    ) -> CallerIdentity {
        CallerIdentity(
            caller: Caller(applicationIdentifier: nil, accessGroups: [], source: .executable), executable: "",
            mark: nil, unit: unit, entitlements: current.generation, trouble: trouble(with: peer))
    }

    /// Looks once more at a process whose `identity` is not current. Nil when it executes another program now, or is gone.
    func identify(_ peer: PeerProcess, after identity: CallerIdentity) -> CallerIdentity? {
        if let mark = identity.mark, peer.isThere, isHidden(peer.number) {
            return changed(identity, SeenExecutable(known: identity.executable, mark, system), entitlements.current)
        }
        let now = identify(peer)
        return now.mark == identity.mark ? now : nil
    }

    /// True while what `identify` found still holds: the process executes the same file, and the entitlements are the same.
    /// One that hides its memory since it connected keeps what it had: to execute another program would have closed the
    /// connection.
    func isCurrent(_ identity: CallerIdentity, _ peer: PeerProcess) -> Bool {
        guard peer.isThere, entitlements.current.generation == identity.entitlements else { return false }
        guard let mark = identity.mark else { return false }
        do throws(SystemError) {
            return try FileMark(of: SeenExecutable.link(peer.number), system) == mark
        } catch {
            return Self.isHidden(error)
        }
    }

    // MARK: Processes that cannot be looked at

    private static func isHidden(_ error: SystemError) -> Bool {
        error.errorNumber == ErrorNumber.accessDenied || error.errorNumber == ErrorNumber.notPermitted
    }

    private func isHidden(_ process: Int32) -> Bool {
        do throws(SystemError) {
            _ = try FileMark(of: SeenExecutable.link(process), system)
            return false
        } catch { return Self.isHidden(error) }
    }

    /// One that hides its memory, after the entitlements have changed: what it was found by otherwise stands.
    private func changed(
        _ identity: CallerIdentity, _ seen: SeenExecutable, _ current: EntitlementsSource.Current
    ) -> CallerIdentity {
        var caller = identity.caller
        let path = Self.text(seen.path)
        if !caller.isAdministrator, !Self.isContainer(caller) {
            if let entry = entry(of: seen, current) {
                caller = Self.caller(entry)
            } else if caller.source == .entitlements {
                caller = bundle(of: seen) ?? Self.caller(path, .executable)
            }
        }
        return CallerIdentity(
            caller: caller, executable: identity.executable, mark: identity.mark, unit: identity.unit,
            entitlements: current.generation)
    }

    private func trouble(with peer: PeerProcess) -> String {
        guard peer.number > 0 else { return "it is of another PID namespace, into which the agent does not see" }
        guard isHidden(peer.number) || peer.mark == nil else {
            return "it has ended, or executes another program than when it connected"
        }
        return """
            the agent may not see which program it executes: it hid its memory before it connected (PR_SET_DUMPABLE), or its \
            file cannot be read by its user, or gives it privileges
            """
    }

    // MARK: Rules, the first that holds

    private func caller(
        _ process: Int32, _ seen: SeenExecutable, _ unit: String, _ current: EntitlementsSource.Current
    ) -> Caller {
        let path = Self.text(seen.path)
        let theirs = FileMark(FilePath(unchecked: Array("/proc/\(process)/ns/mnt".utf8)), system)
        guard let theirs, let namespace, theirs == namespace else {
            let name = Self.containerName(unit, theirs)
            return Self.caller("\(Self.container)\(name):\(path)", .executable)
        }
        if isAdministrator(seen.mark) {
            return Caller(
                applicationIdentifier: Entitlements.administratorGroup, accessGroups: [Entitlements.administratorGroup],
                holdsAllGroups: true, source: .administrator)
        }
        if let entry = entry(of: seen, current) { return Self.caller(entry) }
        if let bundle = bundle(of: seen) { return bundle }
        if let script = InterpretedScript.path(process, executable: seen.path, system) {
            return Self.caller("\(Self.script)\(Self.text(script))", .script)
        }
        return Self.caller(path, .executable)
    }

    /// An upgrade replaces the file in its directory; a directory that was put in the place of that one is another's.
    private func isAdministrator(_ mark: FileMark) -> Bool {
        guard let administrator else { return false }
        let now = (file: FileMark(administrator, system), directory: FileMark(administrator.parent, system))
        let first = firstAdministrator.withLock { first in
            if first == nil { first = now }
            return first ?? now
        }
        if mark == first.file { return true }
        return mark == now.file && now.directory != nil && now.directory == first.directory
    }

    /// What the groups of programs in other mount namespaces begin with.
    private static let container = "container:"
    /// What the groups of scripts begin with.
    static let script = "script:"

    private static func isContainer(_ caller: Caller) -> Bool {
        caller.source == .executable && caller.accessGroups.allSatisfy { $0.hasPrefix(container) }
    }

    private func bundle(of seen: SeenExecutable) -> Caller? {
        propertyLists.bundleIdentifier(beside: seen.path).map { Self.caller($0, .informationPropertyList) }
    }

    /// The entry that names the same file, before all others the one of its very path. A program whose file was replaced while
    /// it runs, as by an upgrade, still counts as the one of its path, whatever links lead there.
    private func entry(of seen: SeenExecutable, _ current: EntitlementsSource.Current) -> Entitlements.Entry? {
        for entitlements in current.files {
            if let text = seen.path.text, let entry = entitlements[text] { return entry }
            for entry in entitlements.entries {
                guard let path = FilePath(entry.executable) else { continue }
                if seen.isGone ? ExecutablePath.resolved(path) == seen.path : FileMark(path, system) == seen.mark {
                    return entry
                }
            }
        }
        return nil
    }

    private static func caller(_ entry: Entitlements.Entry) -> Caller {
        Caller(
            applicationIdentifier: entry.applicationIdentifier, accessGroups: entry.allGroups.filter { $0 != "*" },
            holdsAllGroups: entry.allGroups.contains("*"), source: .entitlements)
    }

    private static func caller(_ identifier: String, _ source: Caller.Source) -> Caller {
        Caller(applicationIdentifier: identifier, accessGroups: [identifier], source: source)
    }

    /// A path as the name of a group: one that is no text is quoted, so that no two are alike.
    static func text(_ path: FilePath) -> String { path.text ?? path.quoted }

    // MARK: Units and containers

    /// The systemd unit of a process, or its control group; empty where neither can be told.
    private static func unit(of process: Int32, _ system: any SystemCalls) -> String {
        guard process > 0, let group = ProcessFacts.controlGroup(of: process, system) else { return "" }
        let parts = group.bytes.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        return parts.last { isUnit($0) } ?? text(group)
    }

    private static func isUnit(_ name: String) -> Bool { name.hasSuffix(".service") || name.hasSuffix(".scope") }

    /// What a container is called in the names of groups: its unit, which outlives a restart, or the number of its mount
    /// namespace, which does not.
    private static func containerName(_ unit: String, _ namespace: FileMark?) -> String {
        if isUnit(unit) { return unit }
        return namespace.map { "mnt-\($0.inode)" } ?? "unknown"
    }
}

/// A file by what it is, and not by a name.
struct FileMark: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64

    init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    init(of path: FilePath, _ system: any SystemCalls) throws(SystemError) {
        let status = try system.status(of: path, in: currentDirectory, followLinks: true)
        device = status.device
        inode = status.inode
    }

    /// Nil when it cannot be looked at.
    init?(_ path: FilePath, _ system: any SystemCalls) {
        do throws(SystemError) { try self.init(of: path, system) } catch { return nil }
    }
}

/// The executable of a process, as it is now.
struct SeenExecutable {
    /// Without " (deleted)".
    let path: FilePath
    let mark: FileMark
    /// True when its path leads nowhere, or to another file: it was removed or replaced.
    let isGone: Bool

    /// One that was seen before.
    init(known path: FilePath, _ mark: FileMark, _ system: any SystemCalls) {
        self.path = path
        self.mark = mark
        isGone = FileMark(path, system) != mark
    }

    static func link(_ process: Int32) -> FilePath { FilePath(unchecked: Array("/proc/\(process)/exe".utf8)) }

    /// Nil when it cannot be looked at.
    init?(of process: Int32, _ system: any SystemCalls) {
        guard let shown = ProcessFacts.executable(of: process), let mark = FileMark(Self.link(process), system) else {
            return nil
        }
        self.mark = mark
        let suffix = Array(" (deleted)".utf8)
        // A file may be called so.
        if shown.bytes.suffix(suffix.count).elementsEqual(suffix), FileMark(shown, system) != mark {
            path = FilePath(unchecked: Array(shown.bytes.dropLast(suffix.count)))
            isGone = true
        } else {
            path = shown
            isGone = false
        }
    }
}
