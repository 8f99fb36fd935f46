import AgentServer
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The process: prepares itself, and becomes the agent of a home.
@main
enum AgentProgram {
    /// The version of the program.
    static let version = "0.1.0"

    private static let system: any SystemCalls = LinuxSystemCalls.shared

    private enum Status {
        static let failed: Int32 = 1
        static let usage: Int32 = 64
    }

    static func main() {
        StandardDescriptors.reserve()
        // Before the first secret: nobody may trace this process, and it leaves no core file.
        let isHardened = SecretMemory.hardenProcess()
        // Each of these would end the process without a lock: what it lent would stay where it is.
        for number in [SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR] {
            signal(number, SIG_IGN)
        }
        umask(0o077)
        let arguments: AgentArguments
        do throws(AgentArguments.Mistake) {
            arguments = try AgentArguments(words())
        } catch {
            say("candado-agent: error: \(error.message)\ncandado-agent: hint: candado-agent --help\n", 2)
            exit(Status.usage)
        }
        switch arguments.wish {
        case .showHelp: say(AgentArguments.help, 1)
        case .showVersion: say("candado-agent \(version)\n", 1)
        case .run: exit(run(arguments, isHardened: isHardened))
        }
    }

    /// Paths are bytes, which need not be text.
    private static func words() -> [FilePath] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { FilePath(copying: $0) }
        }
    }

    /// Runs until it is told to end. Returns the exit status.
    private static func run(_ arguments: AgentArguments, isHardened: Bool) -> Int32 {
        let readiness = Readiness(arguments.readyDescriptor, system)
        do throws(ProtectionError) {
            try serve(arguments, readiness, isHardened: isHardened)
            return 0
        } catch {
            readiness.tell("error \(error.description)")
            notify(.status("could not start: \(error.description)"))
            say("candado-agent: error: \(error.description)\n", 2)
            return Status.failed
        }
    }

    private static func serve(
        _ arguments: AgentArguments, _ readiness: Readiness, isHardened: Bool
    ) throws(ProtectionError) {
        // Before there are threads.
        let sockets = try ServiceManager.takeListeningSockets()
        let home = try arguments.keybagHome()
        let settings = try Settings.read(from: home, system)
        SecretMemory.configure(
            allowSecretMemoryDescriptor: settings.usesSecretMemory && !arguments.usesOrdinaryMemory)
        ProcessLimits.raiseDescriptorLimit()
        // The log may lie in it.
        try Agent.prepareDirectory(of: home, system: system)
        let log = try openLog(arguments.log)
        var options = Agent.Options(version: version)
        options.listeningSockets = sockets
        options.handlesSignals = true
        options.watchesLogind = true
        switch try Agent.open(home, options: options, log: log, system: system) {
        case .running(let process):
            log.info("the agent runs already, as process \(process)")
            readiness.tell("running \(process)")
            // A service manager wants to hear that the service is up before it ends.
            notify(.ready(status: "another agent runs, process \(process)"))
        case .agent(let agent):
            if !isHardened { log.warning("this process could not be kept from being traced or dumped") }
            warnOfMemory(log)
            leaveDirectory(home, arguments.log)
            try agent.run {
                readiness.tell("ready \(getpid())")
                notify(.ready(status: "serving \(home.directory.quoted)"))
            } whenEnding: {
                notify(.stopping)
            }
        }
    }

    private static func openLog(_ path: FilePath?) throws(ProtectionError) -> AgentLog {
        guard let path else { return AgentLog(system: system) }
        do throws(SystemError) { return try AgentLog(file: path, system: system) } catch {
            throw ProtectionError(
                .system(error.errorNumber), "the log cannot be opened", path: path, cause: error)
        }
    }

    private static func warnOfMemory(_ log: AgentLog) {
        switch SecretMemory.kind {
        case .secret, .locked: break
        case .unlocked:
            log.warning("memory for keys could not be locked, so it may be swapped out: raise the limit (ulimit -l)")
        }
    }

    /// Holds no file system busy that somebody wants to unmount, unless paths count from here.
    private static func leaveDirectory(_ home: KeybagHome, _ log: FilePath?) {
        guard home.directory.isAbsolute, log?.isAbsolute ?? true else { return }
        // Where it cannot be left, it stays.
        _ = chdir("/")
    }

    /// Whoever started this process may wait for it; one that cannot be told finds out by itself.
    private static func notify(_ state: ServiceManager.State) {
        do throws(ProtectionError) { try ServiceManager.notify(state) } catch {
            say("candado-agent: warning: \(error.description)\n", 2)
        }
    }

    /// There is nobody to whom an error of writing here could be told.
    private static func say(_ text: String, _ descriptor: Int32) {
        Array(text.utf8).withUnsafeBytes { try? system.writeFully(descriptor, $0) }
    }
}

/// The descriptor on which whoever started the program waits for one line.
final class Readiness {
    private let system: any SystemCalls
    private var descriptor: Int32?

    init(_ descriptor: Int32?, _ system: any SystemCalls) {
        self.descriptor = descriptor
        self.system = system
    }

    /// Writes one line, the first time, and closes the descriptor. Nobody may be waiting any more.
    func tell(_ text: String) {
        guard let descriptor else { return }
        self.descriptor = nil
        let line = text.map { $0.isNewline ? " " : String($0) }.joined() + "\n"
        Array(line.utf8).withUnsafeBytes { try? system.writeFully(descriptor, $0) }
        try? system.close(descriptor)
    }
}
