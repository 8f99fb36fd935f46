import CLinux
import Glibc

/// The kernel's own calls. Has no state but whether calls newer than Linux 6.1 are tried; thread-safe.
public final class LinuxInterprocessCalls: InterprocessCalls {
    /// The one that programs use.
    public static let shared = LinuxInterprocessCalls()

    let usesNewCalls: Bool

    /// `usesNewCalls` false leaves aside what Linux 6.1 does not have, so that tests run that branch on a newer kernel.
    init(usesNewCalls: Bool = true) {
        self.usesNewCalls = usesNewCalls
    }
}

/// Runs a call once. Returns what it returned, or the negated `errno`, which is read before anything else can change it.
@inline(__always)
func once(_ body: () -> Int32) -> Int {
    let result = body()
    return result == -1 ? -Int(errno) : Int(result)
}
