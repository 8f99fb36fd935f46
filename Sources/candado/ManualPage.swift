import LinuxSystem

/// Manual pages in the `man` macros, made from the table.
enum ManualPage {
    /// A file name and its text.
    struct Page: Sendable, Hashable {
        let name: FilePath
        let text: String
    }

    /// `candado.1` and one page a command that help shows.
    static func all() -> [Page] {
        var pages: [Page] = []
        pages.append(Page(name: "candado.1", text: overview()))
        for command in CommandTable.commands where !command.isHidden {
            if let name = FilePath(title(command) + ".1") { pages.append(Page(name: name, text: page(command))) }
        }
        return pages
    }

    private static func title(_ command: CommandDefinition) -> String {
        "candado-" + command.name.words.joined(separator: "-")
    }

    private static func overview() -> String {
        var text = header("candado", CommandTable.summary)
        text += ".SH SYNOPSIS\n.B candado\n[\\fIOPTION\\fR]... \\fICOMMAND\\fR ...\n"
        text += ".SH DESCRIPTION\n"
        text += paragraph(
            "A file belongs to a protection class, and the class says in which lock state it can be read. Files are encrypted, each under a key of its own, which is wrapped by the key of its class and kept beside it."
        )
        text += ".SH COMMANDS\n"
        for command in CommandTable.commands where !command.isHidden {
            text += ".TP\n.BR \(escape(title(command))) (1)\n\(line(command.summary))\n"
        }
        text += options("OPTIONS", CommandTable.globalOptions)
        text += ".SH CLASSES\n"
        for (name, readable) in classes { text += ".TP\n.B \(escape(name))\n\(line(readable))\n" }
        text += statuses(ExitStatus.allCases)
        text += ".SH FILES\n.TP\n.B $XDG_DATA_HOME/candado\nthe keybag and the settings\n"
        text += ".TP\n.B $XDG_STATE_HOME/candado\nthe device key and the count of wrong passcodes\n"
        text += ".SH ENVIRONMENT\n.TP\n.B CANDADO_HOME\nthe home, where no \\fB\\-\\-home\\fR is given\n"
        return text
    }

    private static func page(_ command: CommandDefinition) -> String {
        var text = header(title(command), command.summary)
        text += ".SH SYNOPSIS\n.B \(escape(command.synopsis))\n.SH DESCRIPTION\n"
        for body in command.description { text += paragraph(body) }
        if !command.shownOptions.isEmpty { text += options("OPTIONS", command.shownOptions) }
        text += options("OPTIONS OF EVERY COMMAND", CommandTable.globalOptions)
        text += statuses(command.allStatuses)
        if !command.examples.isEmpty {
            text += ".SH EXAMPLES\n"
            for example in command.examples {
                text += ".TP\n.B \(escape(example.line))\n\(line(example.explanation))\n"
            }
        }
        return text + ".SH SEE ALSO\n.BR candado (1)\n"
    }

    /// Name and meaning of each class.
    static let classes: [(String, String)] = [
        ("complete", "readable while unlocked (class A)"),
        (
            "complete-unless-open",
            "readable while unlocked, or through a handle that was open at lock; can be created while locked (class B)"
        ),
        ("until-first-unlock", "readable from the first unlock on; the default (class C)"),
        ("none", "always readable on this machine (class D)"),
    ]

    // MARK: Pieces

    private static func header(_ title: String, _ summary: String) -> String {
        """
        .TH \(escape(title.uppercased())) 1 "" "candado \(CommandTable.version)" "User Commands"
        .SH NAME
        \(escape(title)) \\- \(escape(summary))

        """
    }

    private static func options(_ heading: String, _ options: [OptionDefinition]) -> String {
        var text = ".SH \"\(heading)\"\n"
        for option in options { text += ".TP\n.B \(escape(option.usage))\n\(line(option.help))\n" }
        return text
    }

    private static func statuses(_ statuses: [ExitStatus]) -> String {
        var text = ".SH \"EXIT STATUS\"\n"
        for status in statuses { text += ".TP\n.B \(status.rawValue)\n\(line(status.meaning))\n" }
        return text
    }

    private static func paragraph(_ text: String) -> String { ".PP\n\(line(text))\n" }

    /// A line of text: one that begins with a dot or a quote would be taken for a request.
    private static func line(_ text: String) -> String {
        let escaped = escape(text)
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }

    private static func escape(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "\"": result += "\\(dq"
            default: result.append(character)
            }
        }
        return result
    }
}
