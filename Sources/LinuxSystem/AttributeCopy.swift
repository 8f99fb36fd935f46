import CLinux
import Glibc
import Synchronization

/// What the system's policy (`/etc/xattr.conf`, read by `libattr`) says of an attribute when a file is copied.
enum AttributePolicy {
    case copy
    case skip

    /// libattr parses its table on first use without a lock of its own.
    private static let gate = Mutex<Void>(())

    init(of name: String) {
        let action = Self.gate.withLock { _ in name.withCString { candado_attribute_policy($0) } }
        // 2 marks access control lists: cp has code of its own for those, here they are copied as they are.
        self = action == 1 ? .skip : .copy
    }

    /// Namespaces that only the privileged, or the security module, may set.
    static func isReserved(_ name: String) -> Bool { name.hasPrefix("trusted.") || name.hasPrefix("security.") }
}

extension SystemCalls {
    /// Copies access control lists and the extended attributes that the system's own policy lets copies have, except
    /// those named. What the target has beyond that stays, but for an access control list that it inherited from its
    /// directory and the source does not have.
    ///
    /// Call it after `changeOwner`, which drops file capabilities, and before `changePermissions`, since a list brings
    /// its own permission bits. Throws the error of the first attribute that the target cannot hold, naming it; for
    /// `trusted.` and `security.`, which an ordinary user may not set, being refused is no error.
    public func copyAttributes(from source: Int32, to target: Int32, except names: [String]) throws(SystemError) {
        let present: [String]
        do {
            present = try attributeNames(of: source)
        } catch let error where error.errorNumber == EOPNOTSUPP || error.errorNumber == ENOSYS {
            // A file system without attributes has none to copy.
            return
        }
        for name in present where !names.contains(name) && AttributePolicy(of: name) == .copy {
            // Gone since it was listed, or not for our eyes.
            guard let value = try readable(name, of: source) else { continue }
            do {
                try setAttribute(name, of: target, to: value, replacing: .allowed)
            } catch let error
                where AttributePolicy.isReserved(name)
                && [EPERM, EACCES, EOPNOTSUPP, EINVAL].contains(error.errorNumber)
            {
                continue
            }
        }
        let list = "system.posix_acl_access"
        if !present.contains(list), !names.contains(list) {
            do {
                try removeAttribute(list, of: target)
            } catch let error where error.errorNumber == EOPNOTSUPP {
                return
            }
        }
    }

    private func readable(_ name: String, of descriptor: Int32) throws(SystemError) -> [UInt8]? {
        do {
            return try attribute(name, of: descriptor)
        } catch let error
            where AttributePolicy.isReserved(name) && [EPERM, EACCES, EOPNOTSUPP].contains(error.errorNumber)
        {
            return nil
        }
    }
}
