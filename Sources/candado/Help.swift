/// Text of `--help`, made from the table.
enum Help {
    private static let width = 80

    /// The text for a topic, newline at its end.
    static func text(_ topic: HelpTopic) -> String {
        let lines =
            switch topic {
            case .overview: overview()
            case .group(let word): group(word)
            case .command(let command): page(command)
            }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func overview() -> [String] {
        var lines = ["candado: \(CommandTable.summary)", "", "usage: candado [OPTION]... COMMAND ...", "", "commands:"]
        let rows = CommandTable.commands.filter { !$0.isHidden }.map { ($0.name.rawValue, $0.summary) }
        lines += TextLayout.columns(rows, indent: 2, gap: 2, width: width)
        lines += ["", "options of every command:"] + table(CommandTable.globalOptions)
        lines += ["", "classes, strongest first:"]
        lines += CommandTable.classNames.map { "  " + $0 }
        lines += ["", "'candado COMMAND --help' tells more."]
        return lines
    }

    private static func group(_ word: String) -> [String] {
        let members = CommandTable.commands.filter { $0.name.words.first == word && $0.name.words.count == 2 }
        var lines: [String] = []
        for (index, member) in members.enumerated() {
            lines.append((index == 0 ? "usage: " : "       ") + member.synopsis)
        }
        lines.append("")
        lines += TextLayout.columns(
            members.map { ($0.name.rawValue, $0.summary) }, indent: 2, gap: 2, width: width)
        return lines
    }

    private static func page(_ command: CommandDefinition) -> [String] {
        var lines = ["candado \(command.name.rawValue): \(command.summary)", ""]
        let synopsis = TextLayout.wrap(command.synopsis, width: width - 11)
        lines += synopsis.enumerated().map { ($0.offset == 0 ? "usage: " : "           ") + $0.element }
        for paragraph in command.description {
            lines += [""] + TextLayout.wrap(paragraph, width: width)
        }
        if !command.shownOptions.isEmpty { lines += ["", "options:"] + table(command.shownOptions) }
        lines += ["", "options of every command:"] + table(CommandTable.globalOptions)
        if command.options.contains(where: { $0.name == .protectionClass }) || command.name == .setClass {
            lines += ["", "classes, strongest first:"] + CommandTable.classNames.map { "  " + $0 }
        }
        lines += ["", "exit status:"]
        lines += TextLayout.columns(
            command.allStatuses.map { (String($0.rawValue), $0.meaning) }, indent: 2, gap: 2, width: width)
        if !command.examples.isEmpty {
            lines += ["", "examples:"]
            for example in command.examples {
                lines.append("  " + example.line)
                if !example.explanation.isEmpty { lines.append("      " + example.explanation) }
            }
        }
        return lines
    }

    private static func table(_ options: [OptionDefinition]) -> [String] {
        TextLayout.columns(options.map { ($0.usage, $0.help) }, indent: 2, gap: 2, width: width)
    }
}
