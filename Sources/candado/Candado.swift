import Glibc
import LinuxSystem

/// The process.
@main
enum Candado {
    static func main() {
        StandardDescriptors.reserve()
        // A file size limit is an error like a full disk, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        Interrupts.install()
        exit(
            CommandLineInterface.run(Argument.ofThisProcess, system: LinuxSystemCalls.shared, clock: RealClock()))
    }
}
