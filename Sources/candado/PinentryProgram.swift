import Glibc
import LinuxSystem

/// The program that asks for passcodes.
enum PinentryProgram {
    /// The name that distributions give to the one that is chosen.
    static let name: FilePath = "pinentry"

    /// True when there is a screen on which it could ask.
    static var hasDisplay: Bool {
        ["DISPLAY", "WAYLAND_DISPLAY"].contains { (name: String) in getenv(name).map { $0[0] != 0 } ?? false }
    }
}
