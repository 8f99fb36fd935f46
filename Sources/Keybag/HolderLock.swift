import Glibc
import LinuxSystem
import ProtectionModel

/// Tells other processes that class keys are held here: a shared lock on the byte of the file `holders` whose offset is
/// the process's number. It goes with the process, however that ends, and needs no writing.
struct HolderLock: Sendable {
    static let fileName: FilePath = "holders"
    /// The kernel's largest number of a process and one (`PID_MAX_LIMIT`).
    static let processLimit: Int64 = 1 << 22

    let path: FilePath
    let system: any SystemCalls

    /// Makes the empty file.
    func create() throws(SystemError) {
        try system.openFile(path, [.read, .write, .create, .noFollow, .nonBlocking]).close()
    }

    /// Nil when the file cannot be had or locked. One that is missing is made.
    func hold() -> HeldDescriptor? {
        do throws(SystemError) {
            let file = HeldDescriptor(try openForReading())
            return try file.lock(.shared, start: Int64(getpid()), count: 1, wait: true) ? file : nil
        } catch {
            return nil
        }
    }

    /// For reading, which is enough for a shared lock and works on a read-only disk.
    private func openForReading() throws(SystemError) -> Descriptor {
        do {
            return try system.openFile(path, [.read, .noFollow, .nonBlocking])
        } catch let error where error.errorNumber == ENOENT {
            try create()
            return try system.openFile(path, [.read, .noFollow, .nonBlocking])
        }
    }

    /// A mark that its open file can be shared by, not held yet.
    func mark() throws(SystemError) -> HolderMark { HolderMark(try openForReading()) }

    /// Who holds keys, this process's other keybags included, in words. Behind the bytes of processes lie those of marks
    /// (``HolderMark``): what is found there alone was left by an agent that was killed.
    ///
    /// Only looks, and takes no lock: that works on a read-only disk, and two who look do not see each other.
    func holders() -> [String] {
        do throws(SystemError) {
            let file = try system.openFile(path, [.read, .noFollow, .nonBlocking])
            var found: [Int64] = []
            try search(0, 2 * Self.processLimit, file.number, &found)
            let processes = found.filter { $0 < Self.processLimit }
            let agents = found.filter { $0 >= Self.processLimit }.map { $0 - Self.processLimit }
            return processes.map(Self.name) + agents.filter { !processes.contains($0) }.map(Self.borrowersName)
        } catch {
            if error.errorNumber == ENOENT { return [] }
            return ["unknown: \(error)"]
        }
    }

    /// How a holder is named.
    static func name(_ process: Int64) -> String { "process \(process)" }

    /// How those are named who have memory of an agent that is no more.
    static func borrowersName(_ agent: Int64) -> String {
        "programs that borrowed keys from the agent that was process \(agent)"
    }

    /// Halves the range until single bytes are left that somebody has locked.
    private func search(
        _ start: Int64, _ count: Int64, _ file: Int32, _ found: inout [Int64]
    ) throws(SystemError) {
        guard try system.isLocked(file, start: start, count: count) else { return }
        if count == 1 {
            found.append(start)
            return
        }
        try search(start, count / 2, file, &found)
        try search(start + count / 2, count - count / 2, file, &found)
    }
}
