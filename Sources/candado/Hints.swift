import FileProtection

/// Advice for people, by the kind of error. The libraries say what is wrong; only this table says what to do.
enum Hints {
    /// Sentences of advice for an error, most useful first. None where there is nothing useful to say.
    static func advice(for code: ProtectionError.Code) -> [String] {
        switch code {
        case .locked(nil):
            ["'candado unlock' unlocks for all; --passcode-file, --passcode-fd or a terminal for one command"]
        case .locked(let protectionClass?):
            [
                """
                class \(protectionClass.name) needs an unlock: 'candado unlock' for all; --passcode-file, --passcode-fd or a \
                terminal for this command
                """
            ]
        case .wrongPasscode: ["try again, or set a new passcode with 'candado recover' and the recovery key"]
        case .tooManyTries(let seconds):
            ["wait \(duration(seconds)), or use 'candado recover' and the recovery key"]
        case .noPasscodeSet: ["set one with 'candado passcode set'"]
        case .noPasscodeSource: ["give --passcode-file or --passcode-fd, or run it on a terminal"]
        case .notProtected: ["protect it with 'candado protect'"]
        case .recordMissing: ["run 'candado repair': the header holds a copy of the key record"]
        case .damaged(.record), .damaged(.header):
            [
                "run 'candado repair'; if that fails, restore the file from a backup",
                "if another program saved over the file, it is plain now: 'setfattr -x user.candado FILE', then protect it",
            ]
        case .damaged(.unwrap): ["the key record was changed or is another file's: restore both from a backup"]
        case .damaged(.chunk): ["restore the file from a backup"]
        case .damaged(.keybag), .damaged(.deviceKey):
            [
                "run 'candado doctor'; if both copies are damaged, restore the home from a backup",
                "or move the home aside and run 'candado recover --capsule F' with a recovery capsule and the recovery key",
            ]
        case .damaged(.capsule): ["use another copy: in the home, at the root of a protected tree, or in an export"]
        case .foreignKeybag: ["use the home that it was made with: --home DIR or CANDADO_HOME"]
        case .needsNewerVersion: ["install a newer version of candado"]
        case .unsupported: []
        case .noKeybag: ["make one with 'candado init', or name its directory with --home"]
        case .alreadyExists: ["nothing is ever overwritten: choose another name or another --home"]
        case .otherClass: ["change the class with 'candado set-class'"]
        case .busy: []
        case .secretMemory: ["raise the limit of locked memory (ulimit -l)"]
        case .agentNotReachable, .invalidArgument, .cancelled, .cryptography: []
        case .system(let errorNumber): advice(forErrorNumber: errorNumber)
        }
    }

    /// Advice for an error: for what is unsupported, and for the agent, it depends on why.
    static func advice(for error: ProtectionError) -> [String] {
        if let trouble = AgentTrouble(error) { return advice(for: trouble) }
        if let agent = error.cause as? UnreachableAgent {
            let end = agent.process.map { ", or end it with 'kill \($0)'" } ?? ""
            return ["use it from where it was started\(end); with --no-agent a command unlocks for itself"]
        }
        if case .busy = error.code, error.message == Keybag.raisedBesideAgent {
            return ["'candado unlock' first, without a passcode source here; or --rekey"]
        }
        if case .busy = error.code, error.path != nil { return ["close the program that is writing it and try again"] }
        guard case .unsupported = error.code, let reason = error.reason else { return advice(for: error.code) }
        return switch reason {
        case .fileSystem: [fileSystem]
        case .hardLinks: ["copy it to a name of its own first: the other names would keep the old content"]
        case .directory: ["-r goes into directories, where the command has it"]
        case .symbolicLink: ["name the file that the link points to"]
        case .notRegular: ["only regular files hold content that can be protected"]
        case .ownHome: ["leave it out: the keybag's own files protect themselves"]
        case .locks: ["use a local file system, or one with byte-range locks: reading works here, changing does not"]
        }
    }

    private static func advice(for trouble: AgentTrouble) -> [String] {
        switch trouble {
        case .absent:
            ["start it with 'candado unlock' or 'candado agent'; with --no-agent a command unlocks for itself"]
        case .silent:
            ["if its process was stopped, let it go on with 'kill -CONT'; 'kill -9' ends it, and all is locked then"]
        case .otherVersion: ["end it with 'candado agent --stop'; the next 'candado unlock' starts the new one"]
        case .atLimit: ["close programs that have many protected files open, or try again later"]
        }
    }

    private static let fileSystem = "use a file system with user attributes, such as ext4, xfs or btrfs"

    private static func advice(forErrorNumber errorNumber: Int32) -> [String] {
        switch errorNumber {
        case 28: ["free some space: nothing was changed"]
        case 30: ["the file system is mounted read-only"]
        case 95: [fileSystem]
        case 122: ["the quota is used up: nothing was changed"]
        default: []
        }
    }

    /// Seconds, minutes or hours, rounded up.
    static func duration(_ seconds: Double) -> String {
        let whole = seconds.isFinite ? Int(min(max(seconds.rounded(.up), 0), 1e9)) : 0
        switch whole {
        case 1: return "1 second"
        case ..<120: return "\(whole) seconds"
        case ..<7200: return "\((whole + 59) / 60) minutes"
        default: return "\((whole + 3599) / 3600) hours"
        }
    }
}
