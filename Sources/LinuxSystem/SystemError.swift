/// A system call that failed: which one, with which `errno`, on which path.
public struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The call's name, as in its manual page.
    public let call: String
    /// The `errno`.
    public let errorNumber: Int32
    /// The path it was about, when the caller named one.
    public let path: FilePath?
    /// The extended attribute it was about, if any.
    public let attribute: String?

    /// Joins the facts.
    public init(call: String, errorNumber: Int32, path: FilePath? = nil, attribute: String? = nil) {
        self.call = call
        self.errorNumber = errorNumber
        self.path = path
        self.attribute = attribute
    }

    /// The call, the path, the attribute and the system's sentence for the error.
    public var description: String {
        let subject = path.map { " \($0.quoted)" } ?? ""
        let name = attribute.flatMap { FilePath($0) }.map { " attribute \($0.quoted)" } ?? ""
        return "\(call)\(subject)\(name): \(SystemErrorText.sentence(errorNumber))"
    }
}
