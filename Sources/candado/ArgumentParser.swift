import LinuxSystem

/// What a command line asks for.
enum ParsedCommandLine: Sendable {
    case run(Invocation)
    case help(HelpTopic)
    case version
}

/// What help is about.
enum HelpTopic: Sendable {
    case overview
    /// The first word of two-word commands.
    case group(String)
    case command(CommandDefinition)
}

/// A command with its options and operands, checked against the table.
struct Invocation: Sendable {
    /// The command's row of the table.
    let command: CommandDefinition
    /// Operands in order.
    let operands: [Argument]
    /// Values by option; a flag has an empty list.
    let options: [OptionName: [Argument]]

    /// True when the option was given.
    func has(_ name: OptionName) -> Bool { options[name] != nil }

    /// The option's value, or nil when it was not given.
    func value(_ name: OptionName) -> Argument? { options[name]?.last }

    /// The option's value as a text. The table has checked words and numbers; anything else may not be UTF-8.
    func text(_ name: OptionName) throws(UsageError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.text else {
            throw UsageError("the value \(value.quoted) of '--\(name.rawValue)' is not UTF-8")
        }
        return text
    }

    /// The values of an option that may be given several times, as texts.
    func texts(_ name: OptionName) throws(UsageError) -> [String] {
        var result: [String] = []
        for value in options[name] ?? [] {
            guard let text = value.text else {
                throw UsageError("the value \(value.quoted) of '--\(name.rawValue)' is not UTF-8")
            }
            result.append(text)
        }
        return result
    }

    /// The option's value as a number, or nil when it was not given.
    func number(_ name: OptionName) -> Int? { value(name)?.text.flatMap { Int($0) } }
}

/// Reads a command line by a table of commands.
///
/// Rules: options may stand anywhere; `--name value` and `--name=value` are the same; one-letter flags may be joined;
/// `--` ends the options; a single `-` is an operand; names are never abbreviated, so that a new option cannot change
/// the meaning of an old script.
struct ArgumentParser: Sendable {
    /// The commands.
    let commands: [CommandDefinition]
    /// Options that every command takes, and that may also stand before it.
    let globalOptions: [OptionDefinition]
    /// First words of the contract that this build does not have, with advice.
    let missingCommands: [String: String]

    /// Reads the words after the program's name. Throws ``UsageError``.
    func parse(_ arguments: [Argument]) throws(UsageError) -> ParsedCommandLine {
        var state = State()
        while let argument = state.next(of: arguments) {
            let bytes = argument.bytes
            if !state.optionsEnded, bytes.first == UInt8(ascii: "-"), bytes.count > 1 {
                if bytes.count == 2, bytes[1] == UInt8(ascii: "-") {
                    state.optionsEnded = true
                } else if bytes[1] == UInt8(ascii: "-") {
                    try readLongOption(argument, &state, arguments)
                } else {
                    try readShortOptions(argument, &state, arguments)
                }
            } else if state.command == nil {
                try readCommandWord(argument, &state)
            } else {
                state.operands.append(argument)
            }
        }
        return try finish(state)
    }

    // MARK: Steps

    private struct State {
        var position = 0
        var optionsEnded = false
        var group: String?
        var command: CommandDefinition?
        var operands: [Argument] = []
        var options: [OptionName: [Argument]] = [:]

        mutating func next(of arguments: [Argument]) -> Argument? {
            guard position < arguments.count else { return nil }
            position += 1
            return arguments[position - 1]
        }
    }

    private func finish(_ state: State) throws(UsageError) -> ParsedCommandLine {
        if state.options[.help] != nil {
            if let command = state.command { return .help(.command(command)) }
            return .help(state.group.map { .group($0) } ?? .overview)
        }
        if state.options[.version] != nil { return .version }
        guard let command = state.command else {
            if let group = state.group {
                let words = secondWords(of: group).map { "'\($0)'" }.joined(separator: " or ")
                throw UsageError("'\(group)' needs another word: \(words)", hint: Self.helpHint(group))
            }
            throw UsageError("no command given", hint: Self.helpHint(nil))
        }
        try checkConflicts(state.options, of: command)
        try checkOperands(state.operands, state.options, of: command)
        return .run(Invocation(command: command, operands: state.operands, options: state.options))
    }

    private func readCommandWord(_ argument: Argument, _ state: inout State) throws(UsageError) {
        let word = argument.text ?? ""
        if let group = state.group {
            guard let command = commands.first(where: { $0.name.words == [group, word] }) else {
                let known = secondWords(of: group)
                throw UsageError(
                    "'\(group)' has no command \(argument.quoted)",
                    hint: Self.nearest(word, of: known).map { "did you mean '\(group) \($0)'?" }
                        ?? Self.helpHint(group))
            }
            state.command = command
            return
        }
        if let command = commands.first(where: { $0.name.words == [word] }) {
            state.command = command
        } else if commands.contains(where: { $0.name.words.count == 2 && $0.name.words.first == word }) {
            state.group = word
        } else if let advice = missingCommands[word] {
            throw UsageError("'\(word)' is not in this build", hint: advice)
        } else {
            let known = commands.filter { !$0.isHidden }.compactMap(\.name.words.first)
            throw UsageError(
                "unknown command \(argument.quoted)",
                hint: Self.nearest(word, of: known).map { "did you mean '\($0)'?" } ?? Self.helpHint(nil))
        }
    }

    private func readLongOption(
        _ argument: Argument, _ state: inout State, _ arguments: [Argument]
    ) throws(UsageError) {
        let body = argument.bytes.dropFirst(2)
        let split = body.firstIndex(of: UInt8(ascii: "="))
        let nameBytes = split.map { body[..<$0] } ?? body
        let name = String(validating: nameBytes, as: UTF8.self) ?? ""
        let known = options(for: state.command)
        guard let definition = known.first(where: { $0.name.rawValue == name }) else {
            throw unknownOption(FilePath(bytes: Array("--".utf8) + nameBytes), name: name, state)
        }
        try checkBuild(definition)
        var attached: Argument?
        if let split, let path = FilePath(bytes: Array(body[(split + 1)...])) { attached = Argument(path) }
        try store(definition, attached, &state, arguments)
    }

    private func readShortOptions(
        _ argument: Argument, _ state: inout State, _ arguments: [Argument]
    ) throws(UsageError) {
        let known = options(for: state.command)
        for byte in argument.bytes.dropFirst() {
            let letter = Character(Unicode.Scalar(byte))
            guard let definition = known.first(where: { $0.short == letter }) else {
                throw unknownOption(FilePath(bytes: [UInt8(ascii: "-"), byte]), name: "", state)
            }
            try checkBuild(definition)
            try store(definition, nil, &state, arguments)
        }
    }

    private func store(
        _ definition: OptionDefinition, _ attached: Argument?, _ state: inout State, _ arguments: [Argument]
    ) throws(UsageError) {
        let name = "--" + definition.name.rawValue
        guard let kind = definition.value else {
            guard attached == nil else { throw UsageError("'\(name)' takes no value") }
            state.options[definition.name] = []
            return
        }
        let following: Argument?
        if let attached { following = attached } else { following = state.next(of: arguments) }
        guard let value = following, !value.bytes.isEmpty else {
            throw UsageError("'\(name)' needs a value", hint: "write '\(name) \(definition.valueName)'")
        }
        guard definition.repeats || state.options[definition.name] == nil else {
            throw UsageError("'\(name)' is given twice")
        }
        try Self.check(value, kind, of: "'\(name)'")
        state.options[definition.name, default: []].append(value)
    }

    // MARK: Checks

    private func checkBuild(_ definition: OptionDefinition) throws(UsageError) {
        if let refusal = definition.refusal {
            throw UsageError("there is no '--\(definition.name.rawValue)': \(refusal)", hint: Self.secretHint)
        }
        guard definition.isInThisBuild else {
            throw UsageError("'--\(definition.name.rawValue)' is not in this build")
        }
    }

    private func checkConflicts(
        _ given: [OptionName: [Argument]], of command: CommandDefinition
    ) throws(UsageError) {
        for definition in options(for: command) where given[definition.name] != nil {
            for other in definition.conflicts where given[other] != nil {
                throw UsageError("'--\(definition.name.rawValue)' and '--\(other.rawValue)' cannot be given together")
            }
        }
    }

    private func checkOperands(
        _ operands: [Argument], _ given: [OptionName: [Argument]], of command: CommandDefinition
    ) throws(UsageError) {
        let usage = "usage: \(command.synopsis)"
        if let refusal = command.operandRefusal, operands.count > command.operands.count {
            throw UsageError(
                "'\(command.name.rawValue)' takes no operand: \(refusal)", hint: Self.secretHint)
        }
        let replaced = command.options.first { $0.replacesOperands && given[$0.name] != nil }
        if let replaced {
            guard operands.isEmpty else {
                throw UsageError("operands cannot be given beside '--\(replaced.name.rawValue)'", hint: usage)
            }
            return
        }
        let required = command.operands.filter(\.isRequired)
        guard operands.count >= required.count else {
            throw UsageError("'\(command.name.rawValue)' needs \(required[operands.count].valueName)", hint: usage)
        }
        let repeats = command.operands.last?.repeats ?? false
        guard repeats || operands.count <= command.operands.count else {
            throw UsageError("unexpected operand \(operands[command.operands.count].quoted)", hint: usage)
        }
        for (index, operand) in operands.enumerated() {
            let definition = command.operands[min(index, command.operands.count - 1)]
            guard !operand.bytes.isEmpty else {
                throw UsageError("an operand is empty where \(definition.valueName) should be", hint: usage)
            }
            try Self.check(operand, definition.kind, of: definition.valueName)
        }
    }

    private static func check(_ value: Argument, _ kind: ValueKind, of owner: String) throws(UsageError) {
        switch kind {
        case .text, .file, .directory: return
        case .number:
            guard let text = value.text, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), Int(text) != nil else {
                throw UsageError("\(owner) needs a whole number, not \(value.quoted)")
            }
        case .word(let noun, let words):
            guard let text = value.text, words.contains(text) else {
                let near = value.text.flatMap { nearest($0, of: words) }
                throw UsageError(
                    "unknown \(noun) \(value.quoted)",
                    hint: near.map { "did you mean '\($0)'?" } ?? "\(noun): \(words.joined(separator: ", "))")
            }
        }
    }

    // MARK: Advice

    private func options(for command: CommandDefinition?) -> [OptionDefinition] {
        (command?.options ?? []) + globalOptions
    }

    private func secondWords(of group: String) -> [String] {
        commands.filter { $0.name.words.count == 2 && $0.name.words[0] == group }.map { $0.name.words[1] }
    }

    private func unknownOption(_ path: FilePath?, name: String, _ state: State) -> UsageError {
        let quoted = path?.quoted ?? "''"
        let known = options(for: state.command).filter(\.isInThisBuild).map(\.name.rawValue)
        if let near = Self.nearest(name, of: known) {
            return UsageError("unknown option \(quoted)", hint: "did you mean '--\(near)'?")
        }
        let elsewhere = commands.contains { $0.options.contains { $0.name.rawValue == name } }
        if state.command == nil, elsewhere {
            return UsageError("unknown option \(quoted) before the command", hint: "write it behind the command")
        }
        if name.isEmpty {
            return UsageError("unknown option \(quoted)", hint: "write '--' before an operand that begins with a dash")
        }
        return UsageError("unknown option \(quoted)", hint: Self.helpHint(state.command?.name.rawValue))
    }

    private static let secretHint = "give it by stdin, --secret-file, --secret-fd, or on a terminal"

    private static func helpHint(_ command: String?) -> String {
        "run 'candado \(command.map { $0 + " " } ?? "")--help'"
    }

    /// The known word that a mistyped one was meant to be, if one is near enough.
    static func nearest(_ word: String, of known: [String]) -> String? {
        guard word.utf8.count >= 2, word.utf8.count <= 64 else { return nil }
        if let longer = known.filter({ $0.hasPrefix(word) }).min(by: { $0.utf8.count < $1.utf8.count }) {
            return longer
        }
        let allowed = word.utf8.count <= 4 ? 1 : 2
        return known.map { (name: $0, distance: distance(Array(word.utf8), Array($0.utf8))) }
            .filter { $0.distance <= allowed }
            .min { $0.distance < $1.distance }?.name
    }

    /// The least number of bytes added, left out, replaced or swapped with their neighbour (restricted edit distance).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforePrevious: [Int] = []
        var previous = Array(0...right.count)
        for (row, leftByte) in left.enumerated() {
            var current = [row + 1]
            for (column, rightByte) in right.enumerated() {
                let substitution = previous[column] + (leftByte == rightByte ? 0 : 1)
                var best = min(substitution, previous[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, leftByte == right[column - 1], left[row - 1] == rightByte {
                    best = min(best, beforePrevious[column - 1] + 1)
                }
                current.append(best)
            }
            beforePrevious = previous
            previous = current
        }
        return previous[right.count]
    }
}
