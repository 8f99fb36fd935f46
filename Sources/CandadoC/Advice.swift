import FileProtection
import ProtectionModel

/// What the person before a program can do about an error: it is shown as it is. The libraries below say only what is wrong.
enum Advice {
    /// One sentence, or nil where there is nothing useful to say.
    static func sentence(for error: ProtectionError) -> String? {
        if let trouble = AgentTrouble(error) { return sentence(for: trouble) }
        switch error.code {
        case .locked, .noPasscodeSource:
            return "'candado unlock' unlocks for all programs"
        case .notProtected: return "'candado protect' protects it in place"
        case .recordMissing, .damaged(.record), .damaged(.header):
            return "'candado repair' mends what a second copy can mend; else restore it from a backup"
        case .damaged(.unwrap): return "the key record was changed or is another file's: restore both from a backup"
        case .damaged(.chunk): return "restore the file from a backup"
        case .damaged: return "run 'candado doctor'"
        case .foreignKeybag: return "it needs the home that it was made with: CANDADO_HOME names another"
        case .needsNewerVersion: return "install a newer version of candado"
        case .noKeybag: return "'candado init' makes one; CANDADO_HOME names another home"
        case .agentNotReachable: return "run 'candado doctor'"
        case .secretMemory: return "raise the limit of locked memory (RLIMIT_MEMLOCK)"
        case .otherClass: return "'candado set-class' changes the class"
        case .unsupported: return error.reason.flatMap(sentence(for:))
        case .wrongPasscode, .tooManyTries, .noPasscodeSet, .alreadyExists, .busy, .invalidArgument, .cancelled,
            .cryptography, .system:
            return nil
        }
    }

    private static func sentence(for trouble: AgentTrouble) -> String {
        switch trouble {
        case .absent: "'candado unlock' starts it"
        case .silent: "if its process was stopped, let it go on; 'kill -9' ends it, and all is locked then"
        case .otherVersion: "end it with 'candado agent --stop'; the next 'candado unlock' starts the new one"
        case .atLimit: "close handles, here or in other programs, or try again later"
        }
    }

    private static func sentence(for reason: ProtectionError.Unsupported) -> String? {
        switch reason {
        case .fileSystem: "use a file system with user attributes, such as ext4, xfs or btrfs"
        case .hardLinks: "copy it to a name of its own first"
        case .symbolicLink: "name the file that it points to, or give CANDADO_FOLLOW where that is taken"
        case .locks: "use a file system with byte-range locks: reading works here, changing does not"
        case .directory, .notRegular, .ownHome: nil
        }
    }
}
