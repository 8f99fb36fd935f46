import KeychainModel
import LinuxSystem

/// Who a client of the keychain is taken for, and by what it is known again.
struct CallerIdentity: Sendable {
    let caller: Caller
    /// The path of its executable, without what the kernel puts behind that of a file that is gone; empty where it cannot be
    /// told.
    let executable: FilePath
    /// The file that it executes; nil where it cannot be told.
    let mark: FileMark?
    /// Its systemd unit or control group, for the log; empty where there is none.
    let unit: String
    /// The generation of the entitlements that it was found by.
    let entitlements: UInt64
    /// Why it cannot be told from others; nil where it can.
    var trouble: String?
}
