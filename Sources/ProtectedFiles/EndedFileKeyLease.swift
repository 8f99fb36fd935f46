import ProtectionModel

/// In the place of a loan that a handle of class A had to give up and could not replace: asking it for the key is what makes
/// the handle try anew.
final class EndedFileKeyLease: FileKeyLease {
    let protectionClass = ProtectionClass.complete

    func withKey<Result>(_ body: (borrowing FileKey) throws -> Result) throws -> Result {
        throw ProtectionError(.locked(.complete), "locked while the file was open")
    }
}
