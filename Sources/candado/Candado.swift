import Glibc
import LinuxSystem

/// The process.
@main
enum Candado {
    static func main() {
        reserveStandardDescriptors()
        // A file size limit is an error like a full disk, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        Interrupts.install()
        exit(
            CommandLineInterface.run(Argument.ofThisProcess, system: LinuxSystemCalls.shared, clock: RealClock()))
    }

    /// Opens /dev/null where stdin, stdout or stderr is closed: else the next file opened would take its number, and
    /// messages would be written into it.
    private static func reserveStandardDescriptors() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 {
            let opened = open("/dev/null", O_RDWR)
            if opened >= 0, opened != descriptor { close(opened) }
        }
    }
}
