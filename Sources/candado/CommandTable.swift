// rules: table. One row a command, from which the parser, --help, manual pages and completions are made.
import FileProtection

/// The table of commands.
enum CommandTable {
    /// The version of the program.
    static let version = "0.1.0"

    /// One sentence on the whole program.
    static let summary = "protect files and secrets by class and lock state"

    /// Reads a command line by this table.
    static let parser = ArgumentParser(
        commands: commands, globalOptions: globalOptions, missingCommands: missingCommands)

    /// Options that every command takes.
    static let globalOptions: [OptionDefinition] = [
        .value(.home, "DIR", .directory, "use the keybag in this directory"),
        .flag(.json, "print JSON instead of text"),
        .flag(.quiet, "print errors only", conflicts: []),
        .value(
            .passcodeFile, "F", .file, "read the passcode from this file, less one newline at its end",
            conflicts: [.passcodeDescriptor]),
        .value(.passcodeDescriptor, "N", .number, "read the passcode from this open descriptor"),
        .flag(.pinentry, "ask for passcodes by the program pinentry instead of on the terminal"),
        .value(.pinentryProgram, "F", .file, "ask by this pinentry program: a path, or a name on PATH"),
        .flag(.noAgent, "leave the agent aside: unlock in this process, for this command only"),
        .flag(.help, "show help"),
        .flag(.version, "show the version"),
    ]

    /// What the contract has and this build does not.
    static let missingCommands: [String: String] = [
        "mount": "this build has no mount",
        "keybag": "this build has no export, import or rotation",
    ]

    /// The names of the classes, strongest first.
    static let classNames = ProtectionClass.allCases.map(\.name)

    private static let classValue = ValueKind.word(noun: "class", classNames)

    private static let paths = [OperandDefinition("PATH", repeats: true)]

    private static let recursive = OptionDefinition.flag(
        .recursive, short: "r", "go into directories; symbolic links are not followed")

    private static let crossFileSystems = OptionDefinition.flag(
        .crossFileSystems, "with -r, go on into other file systems mounted below")

    private static let newPasscode: [OptionDefinition] = [
        .value(
            .newPasscodeFile, "F", .file, "read the new passcode from this file, less one newline at its end",
            conflicts: [.newPasscodeDescriptor]),
        .value(.newPasscodeDescriptor, "N", .number, "read the new passcode from this open descriptor"),
    ]

    /// Of every command that opens the keybag: its copies may be damaged, or a newer version's.
    private static let keybagStatuses: [ExitStatus] = [.damaged, .unsupported, .agentNotReachable]

    private static let passcodeStatuses = keybagStatuses + [.wrongPasscode, .noPasscodeSource]

    private static let keyStatuses = passcodeStatuses + [.locked, .notProtected]

    private static let treeStatuses = keyStatuses + [.partlyDone]

    /// All commands, in the order of help.
    static let commands: [CommandDefinition] = fileCommands + keychainCommands + generators

    private static let fileCommands: [CommandDefinition] = [
        CommandDefinition(
            .initialize, summary: "make a keybag for this user",
            description: [
                """
                Makes the device key, the class keys and the keybag. The passcode is asked for twice, and a \
                recovery key is shown once: write it down.
                """,
                """
                Nothing that is there already is ever overwritten. Without a terminal, give the passcode by \
                --passcode-file or --passcode-fd, or choose --no-passcode; and choose one of the two recovery \
                options.
                """,
                """
                The device key never leaves this machine. Losing it without a recovery key loses every protected \
                file.
                """,
            ],
            options: [
                .flag(
                    .noPasscode, "set no passcode: nothing can be locked then",
                    conflicts: [.passcodeFile, .passcodeDescriptor]),
                .flag(.noRecoveryKey, "make no recovery key", conflicts: [.recoveryKeyFile]),
                .value(
                    .recoveryKeyFile, "F", .file, "write the recovery key to this new file instead of showing it"),
                .value(
                    .derivationCost, "N", .number,
                    "the passcode's cost as scrypt's logarithm of N; measured when not given"),
            ],
            statuses: keybagStatuses + [.noPasscodeSource],
            examples: [
                CommandExample(line: "candado init", explanation: "asks for a passcode and shows a recovery key"),
                CommandExample(
                    line: "candado init --passcode-file p --recovery-key-file /media/stick/recovery",
                    explanation: "asks nothing"),
            ]),
        CommandDefinition(
            .unlock, summary: "unlock for all of this user's programs",
            description: [
                """
                Asks for the passcode and hands it to the agent, which holds the class keys until something locks. \
                Starts the agent when none runs. Returns when every program of this user can read its files.
                """,
                """
                When it is unlocked already nothing is asked; a passcode that is given by an option is tried all the same.
                """,
            ],
            statuses: passcodeStatuses,
            examples: [
                CommandExample(line: "candado unlock", explanation: "asks for the passcode"),
                CommandExample(
                    line: "candado unlock --passcode-fd 3 3< /run/keys/passcode", explanation: "asks nothing"),
            ]),
        CommandDefinition(
            .lock, summary: "lock for all of this user's programs",
            description: [
                """
                Takes the keys of the classes complete and complete-unless-open from the agent and from every \
                program that it lent file keys of class complete to. When it returns with 0, none of them can be used \
                or found in memory.
                """,
                """
                What is in the way is named: programs that carry the keybag themselves, and operations that began \
                before and have not ended. Then it ends with 1. Files of class complete-unless-open that are open stay \
                open; it says whose.
                """,
            ],
            options: [
                .flag(.wait, "wait until nothing is in the way and no file of class complete-unless-open is open")
            ],
            statuses: keybagStatuses,
            examples: [CommandExample(line: "candado lock", explanation: "at once, without a grace period")]),
        CommandDefinition(
            .status, summary: "show the lock state and what is available",
            description: [
                """
                Shows the keybag, the lock state, for each class whether its files can be read now, and the agent: \
                since when the state is what it is, why it was last locked, and which programs are connected. No \
                passcode is asked for.
                """,
                "Warns on stderr while neither a recovery key nor an export exists.",
                "With --follow it shows the present state and then a line for each change, until it is interrupted.",
            ],
            options: [.flag(.follow, "go on, with a line for every change of the lock state")],
            statuses: keybagStatuses,
            examples: [
                CommandExample(line: "candado status --json", explanation: "the same for a program"),
                CommandExample(line: "candado status --follow --json", explanation: "one JSON object a line"),
            ]),
        CommandDefinition(
            .agent, summary: "start or end the agent",
            description: [
                """
                Starts the agent of this home when none runs, locked. 'candado unlock' does the same when it is \
                needed; candado-agent(1) tells how to start it at login.
                """,
                "With --stop the agent locks and ends, and what it held is gone, class until-first-unlock included.",
            ],
            options: [
                .flag(.foreground, "be the agent, until it is told to end", conflicts: [.stop]),
                .flag(.stop, "lock, and end the agent"),
            ],
            statuses: keybagStatuses),
        CommandDefinition(
            .configGet, summary: "show settings",
            description: ["Shows one setting, or all of them."],
            operands: [OperandDefinition("KEY", .word(noun: "setting", settingNames), isRequired: false)],
            statuses: keybagStatuses),
        CommandDefinition(
            .configSet, summary: "change a setting",
            description: ["Changes one setting in the home."]
                + Settings.Name.allCases.map { "\($0.rawValue): \($0.summary)." },
            operands: [
                OperandDefinition("KEY", .word(noun: "setting", settingNames)), OperandDefinition("VALUE", .text),
            ],
            statuses: keybagStatuses,
            examples: [
                CommandExample(
                    line: "candado config set default-class complete",
                    explanation: "new files are class A unless their directory says otherwise")
            ]),
        CommandDefinition(
            .passcodeSet, summary: "set or change the passcode",
            description: [
                "Asks for the present passcode, if there is one, and twice for the new one. No file is touched.",
                """
                Without a terminal, give the present passcode by --passcode-file or --passcode-fd and the new \
                one by --new-passcode-file or --new-passcode-fd.
                """,
            ],
            options: newPasscode, statuses: passcodeStatuses),
        CommandDefinition(
            .passcodeRemove, summary: "remove the passcode",
            description: [
                """
                Asks for the present passcode and removes it. From then on nothing can be locked: whoever can \
                read the home can read the files.
                """
            ],
            statuses: passcodeStatuses),
        CommandDefinition(
            .recover, summary: "set a new passcode with the recovery key",
            description: [
                "Asks for the recovery key and twice for a new passcode. No file is touched.",
                """
                On a machine that has no keybag, --capsule makes it anew from a recovery capsule: a copy lies as \
                .candado-recovery at the root of every tree that 'protect -r' made.
                """,
            ],
            options: [
                .value(.capsule, "F", .file, "make the keybag anew from this recovery capsule"),
                .value(
                    .recoveryKeyFile, "F", .file, "read the recovery key from this file ('-' for stdin)"),
            ] + newPasscode, statuses: passcodeStatuses),
        CommandDefinition(
            .doctor, summary: "look for trouble before it comes",
            description: [
                """
                Checks both copies of the keybag and of the device key, their permissions, secret memory, and \
                whether a recovery key exists. Mends a bad copy from the good one, and says so.
                """
            ],
            statuses: keybagStatuses),
        CommandDefinition(
            .protect, summary: "encrypt files in place",
            description: [
                """
                Replaces each file by its protected form, keeping owner, mode, times, access control lists and \
                other attributes. With -r whole directories; with -r and --class they also get the class as the \
                default of new files inside.
                """,
                """
                A file of another class is left as it is: that is what set-class is for. A file with several hard \
                links is a failure. Special files found on the way are left out and named, symbolic links left \
                alone and counted.
                """,
                """
                It is safe to interrupt at any moment and to run again. The old plaintext may remain in unused \
                blocks of the medium.
                """,
            ],
            operands: paths,
            options: [
                .value(
                    .protectionClass, "C", classValue,
                    "the class; else the directory's, else the keybag's default"),
                recursive, crossFileSystems,
            ],
            statuses: treeStatuses,
            examples: [
                CommandExample(line: "candado protect --class complete letter.txt", explanation: "one file of class A"),
                CommandExample(line: "candado protect -r Documents", explanation: "a whole directory"),
            ]),
        CommandDefinition(
            .unprotect, summary: "decrypt files in place",
            description: [
                """
                Replaces each protected file by its plain form, keeping everything else as it is. With -r whole \
                directories, which also lose their default class.
                """
            ],
            operands: paths, options: [recursive, crossFileSystems], statuses: treeStatuses),
        CommandDefinition(
            .protectionClass, summary: "show the class of files; needs no key",
            description: [
                """
                Shows the class of each path: a class, 'plain', 'directory' with its default, 'damaged', \
                'foreign' (of another keybag) or 'unsupported'. Without keys a class is a claim, not a proof.
                """
            ],
            operands: paths,
            options: [
                .flag(
                    .standardInput, "read the paths from stdin, each ended by a NUL byte", replacesOperands: true)
            ],
            statuses: [.partlyDone, .damaged, .unsupported],
            examples: [
                CommandExample(
                    line: "find . -type f -print0 | candado class --stdin0 --json",
                    explanation: "one JSON object a line")
            ]),
        CommandDefinition(
            .setClass, summary: "change the class of protected files",
            description: [
                """
                Wraps each file's key for another class; the content is not rewritten. A directory gets the \
                class as the default of new files inside.
                """,
                """
                After raising a class so, old copies of the file's weaker key record, such as in backups, still \
                open it. With --rekey each file gets a new key and is rewritten, which ends that.
                """,
            ],
            operands: [OperandDefinition("CLASS", classValue)] + paths,
            options: [
                .flag(.rekey, "give each file a new key and rewrite it"), recursive, crossFileSystems,
            ],
            statuses: treeStatuses,
            examples: [
                CommandExample(line: "candado set-class complete letter.txt", explanation: "class A from now on")
            ]),
        CommandDefinition(
            .write, summary: "write stdin to a protected file",
            description: [
                """
                Replaces the file, as a whole or not at all, by what comes on stdin. An existing protected file \
                keeps its class unless another is given, and is not replaced while its class is locked.
                """
            ],
            operands: [OperandDefinition("PATH")],
            options: [
                .value(
                    .protectionClass, "C", classValue,
                    "the class; else the old file's, else the directory's, else the keybag's default")
            ],
            statuses: keyStatuses,
            examples: [
                CommandExample(
                    line: "pg_dump db | candado write --class complete db.sql", explanation: "no plaintext on disk")
            ]),
        CommandDefinition(
            .read, summary: "write a protected file to stdout",
            description: [
                """
                Writes the plaintext to stdout. Bytes that are not text are not written to a terminal, unless a \
                single dash follows the path.
                """
            ],
            operands: [
                OperandDefinition("PATH"), OperandDefinition("-", .word(noun: "operand", ["-"]), isRequired: false),
            ],
            statuses: keyStatuses,
            examples: [CommandExample(line: "candado read letter.txt | less", explanation: "")]),
        CommandDefinition(
            .repair, summary: "mend key records and interrupted changes",
            description: [
                """
                Puts back a key record that is missing or malformed from the copy that is good, and finishes or \
                drops changes that were interrupted. Nothing that authenticates is ever thrown away.
                """
            ],
            operands: paths, options: [recursive, crossFileSystems], statuses: treeStatuses),
        CommandDefinition(
            .audit, summary: "report how a directory is protected",
            description: [
                """
                Walks each path without any key and reports what is protected, in which class, and what is not. \
                Ends with status 3 when a file is plain, damaged, of another keybag, or has lost its key record.
                """,
                """
                A file with a well-formed key record is not opened; of others the first block is looked at, for the \
                copy of the record in the header. --headers looks at that of every file. JSON is one object a line, \
                and a summary at the end.
                """,
            ],
            operands: paths,
            options: [
                .flag(.headers, "also read each file's header and compare its copy of the key record"),
                .value(
                    .format, "FORMAT", .word(noun: "format", ["text", "json"]), "how to print: text or json"),
                .value(.output, "F", .file, "write the report to this file"),
                crossFileSystems,
                .flag(.verify, "check every chunk", isInThisBuild: false),
                .flag(.leaks, "look for plaintext beside protected files", isInThisBuild: false),
                .value(.policy, "F", .file, "check against a policy", isInThisBuild: false),
            ],
            statuses: [.partlyDone, .violations, .unsupported],
            examples: [
                CommandExample(line: "candado audit ~/Documents", explanation: "what is not protected")
            ]),
    ]

    private static let generators: [CommandDefinition] = [
        CommandDefinition(
            .generateManual, summary: "write the manual pages",
            description: ["Writes candado.1 and one page a command to a directory."],
            operands: [OperandDefinition("DIR", .directory)], isHidden: true),
        CommandDefinition(
            .generateCompletions, summary: "print a shell's completions",
            description: ["Prints completions for a shell."],
            operands: [OperandDefinition("SHELL", .word(noun: "shell", CompletionShell.allCases.map(\.rawValue)))],
            isHidden: true),
    ]

    /// The names of the settings.
    static let settingNames = Settings.Name.allCases.map(\.rawValue)
}
