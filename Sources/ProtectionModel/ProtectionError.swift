import LinuxSystem

/// What went wrong, in one type for every layer. The code is for programs, the sentence for people, the cause for both.
///
/// Edges map the code by exhaustive tables: `errno` here, exit status in the command line, `OSStatus` in `Security`.
public struct ProtectionError: Error, Sendable, CustomStringConvertible {
    /// The layer in which damage was found, from outside in.
    public enum Layer: String, Sendable, Hashable, CaseIterable {
        /// The extended attribute or the copy of it in the header does not parse.
        case record
        /// Neither header slot of the container authenticates.
        case header
        /// The file key does not unwrap: the record was changed, or belongs elsewhere.
        case unwrap
        /// A chunk of content does not authenticate.
        case chunk
        /// The keybag's bytes are not what was written.
        case keybag
        /// The device key's bytes are not what was written.
        case deviceKey = "device-key"
        /// The recovery capsule, or an export, does not authenticate.
        case capsule
    }

    /// What kind of error it is. Stable: programs may switch over it.
    public enum Code: Sendable, Hashable {
        /// The class cannot be read in the present lock state. Nil when no class is at hand.
        case locked(ProtectionClass?)
        /// The passcode or recovery key is not the right one.
        case wrongPasscode
        /// Too many wrong passcodes; the next try is allowed in so many seconds.
        case tooManyTries(retryAfter: Double)
        /// A passcode is needed for this and none is set.
        case noPasscodeSet
        /// A passcode is needed and nobody can be asked.
        case noPasscodeSource
        /// The file has neither a key record nor a container: it is plain.
        case notProtected
        /// The file is a container whose key record is nowhere to be found.
        case recordMissing
        /// Bytes are not what was written, at this layer.
        case damaged(Layer)
        /// The record belongs to another keybag.
        case foreignKeybag(KeybagIdentifier)
        /// The format's version or a feature bit is from the future.
        case needsNewerVersion
        /// The file system or the kind of file cannot be protected.
        case unsupported
        /// There is no keybag here.
        case noKeybag
        /// Something is already there, and is never overwritten.
        case alreadyExists
        /// The file is in another class already; changing it is another command.
        case otherClass(ProtectionClass)
        /// Somebody else is writing it, or it changed meanwhile.
        case busy
        /// Asked for something that makes no sense.
        case invalidArgument
        /// Interrupted before it was done.
        case cancelled
        /// Memory for secrets cannot be had.
        case secretMemory
        /// The cryptographic library refused.
        case cryptography
        /// The agent does not run, or cannot be talked to.
        case agentNotReachable
        /// A system call failed with this `errno`.
        case system(Int32)
    }

    /// Why something is ``Code/unsupported``: what there is to do about it depends on that.
    public enum Unsupported: Sendable, Hashable, CaseIterable {
        /// The file system has no extended attributes of users.
        case fileSystem
        /// The file has several hard links.
        case hardLinks
        /// A directory where a file should be.
        case directory
        /// A symbolic link, which is never followed.
        case symbolicLink
        /// A device, a socket or a pipe.
        case notRegular
        /// Candado's own home or state.
        case ownHome
        /// Range locks do not work on the file system.
        case locks
    }

    /// The kind of error.
    public let code: Code
    /// One sentence, lower case, no full stop.
    public let message: String
    /// The path it is about, when there is one.
    public var path: FilePath?
    /// What caused it.
    public let cause: (any Error)?
    /// Of an ``Code/unsupported`` error: why, where there is a word for it.
    public let reason: Unsupported?

    /// Makes an error. `message` is a sentence in lower case without a full stop, and never holds a secret.
    public init(
        _ code: Code, _ message: String, path: FilePath? = nil, cause: (any Error)? = nil, reason: Unsupported? = nil
    ) {
        self.code = code
        self.message = message
        self.path = path
        self.cause = cause
        self.reason = reason
    }

    /// The sentence with its path and causes.
    public var description: String {
        var text = path.map { "\($0.quoted): " } ?? ""
        text += message
        if let cause = cause as? ProtectionError {
            text += " (\(cause.message))"
        } else if let cause {
            text += " (\(cause))"
        }
        return text
    }

    /// The same error about another path: where the caller knows the file by a better name.
    public func relocated(to path: FilePath?) -> ProtectionError {
        var copy = self
        copy.path = path
        return copy
    }

    /// The same error with a path, unless it names one already.
    public func at(_ path: FilePath) -> ProtectionError {
        guard self.path == nil else { return self }
        var copy = self
        copy.path = path
        return copy
    }
}
