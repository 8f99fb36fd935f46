import CLinux

/// The C library's words for an `errno`, the same in every locale.
public enum SystemErrorText {
    /// "No such file or directory" and the like; "unknown error 4095" for a number that has no words.
    public static func sentence(_ errorNumber: Int32) -> String {
        guard let text = candado_error_sentence(errorNumber) else { return "unknown error \(errorNumber)" }
        return String(cString: text)
    }

    /// The symbol, such as "ENOENT"; the number where there is none.
    public static func symbol(_ errorNumber: Int32) -> String {
        guard let text = candado_error_symbol(errorNumber) else { return String(errorNumber) }
        return String(cString: text)
    }
}
