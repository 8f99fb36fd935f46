/// The long name of every option of every command.
enum OptionName: String, CaseIterable, Sendable {
    case home
    case json
    case quiet
    case passcodeFile = "passcode-file"
    case passcodeDescriptor = "passcode-fd"
    case pinentry
    case pinentryProgram = "pinentry-program"
    case noAgent = "no-agent"
    case help
    case version
    case noPasscode = "no-passcode"
    case noRecoveryKey = "no-recovery-key"
    case recoveryKeyFile = "recovery-key-file"
    case capsule
    case derivationCost = "kdf-cost"
    case newPasscodeFile = "new-passcode-file"
    case newPasscodeDescriptor = "new-passcode-fd"
    case protectionClass = "class"
    case recursive
    case crossFileSystems = "cross-file-systems"
    case rekey
    case standardInput = "stdin0"
    case headers
    case format
    case output
    case verify
    case leaks
    case policy
    case wait
    case follow
    case foreground
    case stop
    case service
    case server
    case account
    case internetProtocol = "protocol"
    case port
    case path
    case label
    case comment
    case group
    case allGroups = "all-groups"
    case accessible
    case synchronizable
    case local
    case secretFile = "secret-file"
    case secretDescriptor = "secret-fd"
    case outputDescriptor = "output-fd"
    case newAccount = "new-account"
    case newLabel = "new-label"
    case newComment = "new-comment"
    case newGroup = "new-group"
    case newAccessible = "new-accessible"
    case all
    case yes
    case identifier
    case remove
    case secret
    case password
}

/// The words by which each command is called.
enum CommandName: String, CaseIterable, Sendable {
    case initialize = "init"
    case unlock
    case lock
    case status
    case agent
    case configGet = "config get"
    case configSet = "config set"
    case passcodeSet = "passcode set"
    case passcodeRemove = "passcode remove"
    case recover
    case doctor
    case protect
    case unprotect
    case protectionClass = "class"
    case setClass = "set-class"
    case write
    case read
    case repair
    case audit
    case keychainAdd = "keychain add"
    case keychainGet = "keychain get"
    case keychainList = "keychain list"
    case keychainUpdate = "keychain update"
    case keychainDelete = "keychain delete"
    case keychainPurge = "keychain purge"
    case keychainAdopt = "keychain adopt"
    case keychainEntitle = "keychain entitle"
    case keychainEntitlements = "keychain entitlements"
    case generateManual = "generate man"
    case generateCompletions = "generate completions"

    /// The one or two words.
    var words: [String] { rawValue.split(separator: " ").map(String.init) }
}

/// What a value may be: for checking it and for completing it.
enum ValueKind: Sendable, Hashable {
    case text
    case number
    case file
    case directory
    /// One of these words. `noun` is what they are called in an error.
    case word(noun: String, [String])
}

/// One option of the table.
struct OptionDefinition: Sendable {
    /// The long name.
    let name: OptionName
    /// The letter after a single dash, if it has one.
    let short: Character?
    /// What its value may be, or nil for a flag.
    let value: ValueKind?
    /// The value's name in help.
    let valueName: String
    /// One sentence for help, lower case, no full stop.
    let help: String
    /// Options that cannot be given beside it.
    let conflicts: [OptionName]
    /// False for an option of the contract that this build does not have: it is left out of help.
    let isInThisBuild: Bool
    /// True when operands are not asked for if it is given.
    let replacesOperands: Bool
    /// True when it may be given several times.
    var repeats = false
    /// Why there is no such option, for one that is left out on purpose.
    var refusal: String?

    /// A flag.
    static func flag(
        _ name: OptionName, short: Character? = nil, _ help: String, conflicts: [OptionName] = [],
        isInThisBuild: Bool = true, replacesOperands: Bool = false
    ) -> OptionDefinition {
        OptionDefinition(
            name: name, short: short, value: nil, valueName: "", help: help, conflicts: conflicts,
            isInThisBuild: isInThisBuild, replacesOperands: replacesOperands)
    }

    /// An option with a value.
    static func value(
        _ name: OptionName, _ valueName: String, _ kind: ValueKind, _ help: String, conflicts: [OptionName] = [],
        isInThisBuild: Bool = true
    ) -> OptionDefinition {
        OptionDefinition(
            name: name, short: nil, value: kind, valueName: valueName, help: help, conflicts: conflicts,
            isInThisBuild: isInThisBuild, replacesOperands: false)
    }

    /// One that people look for and that must not be. Its value is never repeated in what is said.
    static func refused(_ name: OptionName, _ reason: String) -> OptionDefinition {
        var definition = flag(name, reason, isInThisBuild: false)
        definition.refusal = reason
        return definition
    }

    /// The same option, which may be given several times.
    var repeated: OptionDefinition {
        var definition = self
        definition.repeats = true
        return definition
    }

    /// How it is written: `-r, --recursive` or `--class C`.
    var usage: String {
        var text = short.map { "-\($0), " } ?? ""
        text += "--" + name.rawValue
        if value != nil { text += " " + valueName }
        return text
    }

    /// How it is written in a synopsis: the short form when there is one.
    var synopsis: String {
        if let short { return "-\(short)" }
        return value == nil ? "--" + name.rawValue : "--\(name.rawValue) \(valueName)\(repeats ? "..." : "")"
    }
}

/// One operand of the table. Only the last may repeat.
struct OperandDefinition: Sendable {
    /// Its name in help.
    let valueName: String
    /// What it may be.
    let kind: ValueKind
    /// False when it may be left out.
    let isRequired: Bool
    /// True when there may be more than one.
    let repeats: Bool

    /// Joins the four.
    init(_ valueName: String, _ kind: ValueKind = .file, isRequired: Bool = true, repeats: Bool = false) {
        self.valueName = valueName
        self.kind = kind
        self.isRequired = isRequired
        self.repeats = repeats
    }

    /// How it is written in a synopsis.
    var synopsis: String {
        let text = repeats ? valueName + "..." : valueName
        return isRequired ? text : "[\(text)]"
    }
}

/// A command line worth showing, and what it does.
struct CommandExample: Sendable {
    let line: String
    let explanation: String
}

/// One command of the table: everything that help, manual pages, completions and the parser know of it.
struct CommandDefinition: Sendable {
    let name: CommandName
    /// A few words for the list of commands.
    let summary: String
    /// Paragraphs of whole sentences.
    let description: [String]
    let operands: [OperandDefinition]
    let options: [OptionDefinition]
    /// The statuses that it can end with, beside 0, 1 and 64.
    let statuses: [ExitStatus]
    let examples: [CommandExample]
    /// True for what only packagers call.
    let isHidden: Bool
    /// Why it takes no operands, where one that is given may be a secret and is not repeated in what is said.
    let operandRefusal: String?

    /// Describes a command.
    init(
        _ name: CommandName, summary: String, description: [String], operands: [OperandDefinition] = [],
        options: [OptionDefinition] = [], statuses: [ExitStatus] = [], examples: [CommandExample] = [],
        isHidden: Bool = false, operandRefusal: String? = nil
    ) {
        self.name = name
        self.summary = summary
        self.description = description
        self.operands = operands
        self.options = options
        self.statuses = statuses
        self.examples = examples
        self.isHidden = isHidden
        self.operandRefusal = operandRefusal
    }

    /// The options that help shows.
    var shownOptions: [OptionDefinition] { options.filter(\.isInThisBuild) }

    /// `candado protect [--class C] [-r] PATH...`
    var synopsis: String {
        let words = ["candado", name.rawValue] + shownOptions.map { "[\($0.synopsis)]" } + operands.map(\.synopsis)
        return words.joined(separator: " ")
    }

    /// Every status that it can end with, in order.
    var allStatuses: [ExitStatus] {
        let mine = Set(statuses + [.done, .failed, .usage])
        return ExitStatus.allCases.filter(mine.contains)
    }
}
