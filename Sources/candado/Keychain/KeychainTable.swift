// rules: table. The rows of 'candado keychain'.
import Keychain
import KeychainModel

extension CommandTable {
    /// The access group of what the command adds and looks for, where none is named.
    static let defaultAccessGroup = "candado"

    static let accessibilityNames = Accessibility.allCases.map(\.name)

    private static let accessibilityValue = ValueKind.word(noun: "accessibility", accessibilityNames)

    private static let protocolValue = ValueKind.word(
        noun: "protocol", InternetProtocol.allCases.map(\.name).sorted())

    /// What names an item, or many.
    private static let names: [OptionDefinition] = [
        .value(.service, "S", .text, "the service of a generic password", conflicts: [.server]),
        .value(.server, "S", .text, "the server of an internet password"),
        .value(.account, "A", .text, "the account"),
        .value(
            .internetProtocol, "P", protocolValue, "with --server: the protocol, such as https",
            conflicts: [.service]),
        .value(.port, "N", .number, "with --server: the port", conflicts: [.service]),
        .value(.path, "P", .text, "with --server: the path", conflicts: [.service]),
        .value(.label, "L", .text, "the label, which a person is shown"),
    ]

    /// What narrows a query.
    private static let filters: [OptionDefinition] =
        names + [
            .value(
                .group, "G", .text, "the access group, if not \(defaultAccessGroup)", conflicts: [.allGroups]),
            .flag(.allGroups, "items of all access groups"),
            .value(.accessible, "WORD", accessibilityValue, "only items of this accessibility"),
            .flag(.synchronizable, "only synchronizable items", conflicts: [.local]),
            .flag(.local, "only items that are not synchronizable"),
        ]

    private static let secretSources: [OptionDefinition] = [
        .value(
            .secretFile, "F", .file, "read the secret from this file ('-' is stdin), every byte of it",
            conflicts: [.secretDescriptor]),
        .value(.secretDescriptor, "N", .number, "read the secret from this open descriptor"),
        .refused(.secret, noSecretHere), .refused(.password, noSecretHere),
    ]

    private static let noSecretHere = "a secret on the command line can be seen by others"

    private static let itemStatuses: [ExitStatus] = [
        .damaged, .unsupported, .agentNotReachable, .wrongPasscode, .noPasscodeSource, .locked, .noSuchItem,
    ]

    private static let groupStatuses = itemStatuses

    /// All of them, in the order of help.
    static let keychainCommands: [CommandDefinition] = [
        CommandDefinition(
            .keychainAdd, summary: "store a secret",
            description: [
                """
                Stores a generic password (--service) or an internet password (--server) for an account. The secret is \
                what comes on stdin, every byte of it; on a terminal it is asked for twice, without echo. It has 0 to \
                1,048,576 bytes and is never taken from the command line.
                """,
                """
                The accessibility says in which lock state it can be read: when-unlocked if none is given. Those that \
                end in this-device-only never leave this machine. An item that is there already is a failure: \
                'candado keychain update' changes it.
                """,
                "Accessibilities: \(accessibilityNames.joined(separator: ", ")).",
            ],
            options: names + [
                .value(.comment, "C", .text, "a comment"),
                .value(.group, "G", .text, "the access group, if not \(defaultAccessGroup)"),
                .value(.accessible, "WORD", accessibilityValue, "when it can be read"),
                .flag(.synchronizable, "it may be synchronized to other machines"),
            ] + secretSources,
            statuses: itemStatuses,
            examples: [
                CommandExample(
                    line: "candado keychain add --service backup --account nas", explanation: "asks for the secret"),
                CommandExample(
                    line: "openssl rand -base64 32 | candado keychain add --service backup --account key",
                    explanation: "with the newline at its end, since every byte counts"),
            ],
            operandRefusal: noSecretHere),
        CommandDefinition(
            .keychainGet, summary: "write a secret to stdout",
            description: [
                """
                Writes the secret of the one item that matches, byte for byte, with nothing before or behind it. When \
                several match, none is shown. Bytes that are not text are not written to a terminal, unless a single \
                dash is given.
                """,
                """
                With --json the secret stands in 'secret', and 'encoding' says how: utf-8 where it is that, else base64.
                """,
            ],
            operands: [OperandDefinition("-", .word(noun: "operand", ["-"]), isRequired: false)],
            options: filters + [
                .value(.outputDescriptor, "N", .number, "write it to this open descriptor instead of stdout")
            ],
            statuses: itemStatuses,
            examples: [
                CommandExample(
                    line: "candado keychain get --service backup --account nas | restic -r repo snapshots",
                    explanation: "")
            ]),
        CommandDefinition(
            .keychainList, summary: "show what is stored, without secrets",
            description: [
                """
                Shows class, access group, accessibility and names of each item that matches. Items that cannot be \
                opened in the present lock state are shown as locked; their number is told, and the status is 0.
                """
            ],
            options: filters, statuses: itemStatuses,
            examples: [
                CommandExample(line: "candado keychain list --all-groups --json", explanation: "one JSON object a line")
            ]),
        CommandDefinition(
            .keychainUpdate, summary: "change a secret or what describes it",
            description: [
                """
                Gives the one item that matches another secret, taken as by 'keychain add'. With one of the --new options \
                only what these name is changed, and the secret only if --secret-file or --secret-fd is given too. When \
                several match, nothing is changed, unless --all says that all are meant.
                """
            ],
            options: filters + [
                .value(.newAccount, "A", .text, "change the account"),
                .value(.newLabel, "L", .text, "change the label"),
                .value(.newComment, "C", .text, "change the comment"),
                .value(.newGroup, "G", .text, "move it to another access group"),
                .value(.newAccessible, "WORD", accessibilityValue, "change when it can be read"),
                .flag(.all, "change all items that match"),
            ] + secretSources,
            statuses: itemStatuses + [.partlyDone], operandRefusal: noSecretHere),
        CommandDefinition(
            .keychainDelete, summary: "delete items",
            description: [
                """
                Deletes all items that match, also those that are locked, and says how many. Without anything to match, \
                or with nothing that names an item, such as an access group or --local alone, it needs --all, and says \
                before how many there are.
                """
            ],
            options: filters + [.flag(.all, "delete all items of the access group")],
            statuses: itemStatuses + [.partlyDone]),
        CommandDefinition(
            .keychainPurge, summary: "remove an access group for good",
            description: [
                """
                Removes every item of an access group, locked ones and those set aside as damaged included. Without \
                --yes it says how many there are and changes nothing.
                """
            ],
            operands: [OperandDefinition("GROUP", .text)],
            options: [.flag(.yes, "remove them")], statuses: groupStatuses),
        CommandDefinition(
            .keychainAdopt, summary: "give a moved program its items back",
            description: [
                """
                Moves all items of access group OLD to NEW: for a program that is known by its path and was moved. All \
                or none are moved. It needs to be unlocked.
                """
            ],
            operands: [OperandDefinition("OLD", .text), OperandDefinition("NEW", .text)], statuses: groupStatuses),
        CommandDefinition(
            .keychainEntitle, summary: "say whose items a program sees",
            description: [
                """
                Gives the program at this path an application identifier and access groups in the entitlements file of \
                the home. The first group is that of its new items; without --group it is the identifier. The agent \
                notices at once.
                """,
                """
                Groups keep honest programs of one user apart. They stop an attacker only where a sandbox separates the \
                processes.
                """,
            ],
            operands: [OperandDefinition("EXECUTABLE")],
            options: [
                .value(.identifier, "ID", .text, "the application identifier", conflicts: [.remove]),
                OptionDefinition.value(.group, "G", .text, "an access group; may be given several times").repeated,
                .flag(.remove, "take the program out of the file", conflicts: [.group]),
            ],
            statuses: groupStatuses,
            examples: [
                CommandExample(
                    line: "candado keychain entitle /usr/bin/notes --identifier com.example.notes --group shared",
                    explanation: "")
            ]),
        CommandDefinition(
            .keychainEntitlements, summary: "show whose items programs see",
            description: [
                "Shows the programs of the entitlements file, and whom the agent takes this command for."
            ],
            statuses: groupStatuses),
    ]
}
