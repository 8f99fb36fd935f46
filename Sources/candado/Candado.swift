import Glibc
import LinuxSystem

/// The process.
@main
enum Candado {
    static func main() {
        Interrupts.install()
        exit(
            CommandLineInterface.run(Argument.ofThisProcess, system: LinuxSystemCalls.shared, clock: RealClock()))
    }
}
