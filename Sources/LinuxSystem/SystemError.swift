/// A system call that failed: which one, with which `errno`, on which path.
public struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The call's name, as in its manual page.
    public let call: String
    /// The `errno`.
    public let errorNumber: Int32
    /// The path it was about, when the caller named one.
    public let path: FilePath?

    /// Joins the three facts.
    public init(call: String, errorNumber: Int32, path: FilePath? = nil) {
        self.call = call
        self.errorNumber = errorNumber
        self.path = path
    }

    /// The call, the path and the system's sentence for the error.
    public var description: String {
        let subject = path.map { " \($0.quoted)" } ?? ""
        return "\(call)\(subject): \(SystemErrorText.sentence(errorNumber))"
    }
}
