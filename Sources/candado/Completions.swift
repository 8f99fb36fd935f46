/// The shells that completions are made for.
enum CompletionShell: String, CaseIterable, Sendable {
    case bash
    case zsh
    case fish
}

/// Shell completions, made from the table.
enum Completions {
    /// The script for a shell.
    static func script(_ shell: CompletionShell) -> String {
        switch shell {
        case .bash: bash()
        case .zsh: zsh()
        case .fish: fish()
        }
    }

    private static var shown: [CommandDefinition] { CommandTable.commands.filter { !$0.isHidden } }

    private static var firstWords: [String] {
        var words: [String] = []
        for command in shown {
            if let word = command.name.words.first, !words.contains(word) { words.append(word) }
        }
        return words
    }

    private static var groups: [(String, [String])] {
        firstWords.compactMap { word in
            let seconds = shown.filter { $0.name.words.count == 2 && $0.name.words[0] == word }.map { $0.name.words[1] }
            return seconds.isEmpty ? nil : (word, seconds)
        }
    }

    private static func names(_ options: [OptionDefinition]) -> [String] {
        options.flatMap { option in
            (option.short.map { ["-\($0)"] } ?? []) + ["--" + option.name.rawValue]
        }
    }

    private static var everyOption: [OptionDefinition] {
        var result = CommandTable.globalOptions
        for option in shown.flatMap(\.shownOptions) where !result.contains(where: { $0.name == option.name }) {
            result.append(option)
        }
        return result
    }

    private static func operandWords(_ command: CommandDefinition) -> [String] {
        guard let first = command.operands.first, case .word(_, let words) = first.kind else { return [] }
        return words
    }

    // MARK: bash

    private static func bash() -> String {
        var text = """
            # bash completion for candado
            _candado() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
                local command= word index skip=
                COMPREPLY=()
                for ((index = 1; index < COMP_CWORD; index++)); do
                    word=${COMP_WORDS[index]}
                    if [[ -n $skip ]]; then skip=; continue; fi
                    case $word in

            """
        let withValue = everyOption.filter { $0.value != nil }.map { "--" + $0.name.rawValue }
        text += "            \(withValue.joined(separator: "|"))) skip=1 ;;\n            -*) ;;\n"
        let groupNames = groups.map(\.0)
        text += "            *) case $command in\n"
        text +=
            "                   \"\"\(groupNames.map { "|" + $0 }.joined())) command=\"${command:+$command }$word\" ;;\n"
        text += """
                           esac ;;
                    esac
                done
                case $previous in

            """
        for option in everyOption {
            let name = "--" + option.name.rawValue
            switch option.value {
            case .word(_, let words):
                text +=
                    "        \(name)) COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$current\")); return ;;\n"
            case .directory: text += "        \(name)) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n"
            case .file: text += "        \(name)) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
            case .text, .number: text += "        \(name)) return ;;\n"
            case nil: break
            }
        }
        text +=
            "    esac\n    local words= options='\(names(CommandTable.globalOptions).joined(separator: " "))'\n    case $command in\n"
        text += "        '') words='\(firstWords.joined(separator: " "))' ;;\n"
        for (word, seconds) in groups { text += "        '\(word)') words='\(seconds.joined(separator: " "))' ;;\n" }
        for command in shown {
            let own = names(command.shownOptions)
            let words = operandWords(command)
            text += "        '\(command.name.rawValue)')"
            if !own.isEmpty { text += " options+=' \(own.joined(separator: " "))'" + (words.isEmpty ? "" : ";") }
            if !words.isEmpty { text += " words='\(words.joined(separator: " "))'" }
            text += " ;;\n"
        }
        text += """
                esac
                if [[ $current == -* ]]; then
                    COMPREPLY=($(compgen -W "$options" -- "$current"))
                elif [[ -n $words ]]; then
                    COMPREPLY=($(compgen -W "$words" -- "$current"))
                fi
            }
            complete -o default -F _candado candado

            """
        return text
    }

    // MARK: zsh

    private static func zsh() -> String {
        var text = "#compdef candado\n_candado() {\n  local -a globals\n  globals=(\n"
        text += CommandTable.globalOptions.map { "    \(zshOption($0))\n" }.joined()
        text += "  )\n  local command=$words[2]\n  if (( CURRENT == 2 )); then\n    local -a commands\n    commands=(\n"
        for word in firstWords {
            let summary = shown.first { $0.name.rawValue == word }?.summary ?? "\(word) commands"
            text += "      \(quote("\(word):\(summary)"))\n"
        }
        text += "    )\n    _describe command commands\n    _arguments $globals\n    return\n  fi\n"
        text += "  case $command in\n"
        for (word, seconds) in groups {
            text +=
                "    \(word)) if (( CURRENT == 3 )); then compadd \(seconds.joined(separator: " ")); return; fi; command=\"$words[2] $words[3]\" ;;\n"
        }
        text += "  esac\n  case $command in\n"
        for command in shown {
            let skipped = command.name.words.count
            text +=
                "    \(quote(command.name.rawValue))) shift \(skipped) words; (( CURRENT -= \(skipped) )); _arguments $globals"
            text += command.shownOptions.map { " " + zshOption($0) }.joined()
            for operand in command.operands {
                text += " " + quote("\(operand.repeats ? "*" : ""):\(operand.valueName):\(zshAction(operand.kind))")
            }
            text += " ;;\n"
        }
        return text + "  esac\n}\n_candado \"$@\"\n"
    }

    private static func zshOption(_ option: OptionDefinition) -> String {
        let help = option.help.replacing("[", with: "\\[").replacing("]", with: "\\]").replacing(":", with: "\\:")
        let tail = option.value.map { ":\(option.valueName):\(zshAction($0))" } ?? ""
        let long = quote("--\(option.name.rawValue)\(option.value == nil ? "" : "=")[\(help)]\(tail)")
        return option.short.map { quote("-\($0)[\(help)]") + " " + long } ?? long
    }

    private static func zshAction(_ kind: ValueKind) -> String {
        switch kind {
        case .text, .number: " "
        case .file: "_files"
        case .directory: "_directories"
        case .word(_, let words): "(\(words.joined(separator: " ")))"
        }
    }

    // MARK: fish

    private static func fish() -> String {
        var text = "# fish completion for candado\n"
        text += CommandTable.globalOptions.map { "complete -c candado" + fishOption($0) }.joined()
        for word in firstWords {
            let summary = shown.first { $0.name.rawValue == word }?.summary ?? "\(word) commands"
            text += "complete -c candado -n __fish_use_subcommand -f -a \(word) -d \(quote(summary))\n"
        }
        for (word, seconds) in groups {
            let none =
                "__fish_seen_subcommand_from \(word); and not __fish_seen_subcommand_from \(seconds.joined(separator: " "))"
            text += "complete -c candado -n \(quote(none)) -f -a \(quote(seconds.joined(separator: " ")))\n"
        }
        for command in shown {
            let condition = command.name.words.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
            for option in command.shownOptions {
                text += "complete -c candado -n \(quote(condition))" + fishOption(option)
            }
            let words = operandWords(command)
            if !words.isEmpty {
                text += "complete -c candado -n \(quote(condition)) -a \(quote(words.joined(separator: " ")))\n"
            }
        }
        return text
    }

    private static func fishOption(_ option: OptionDefinition) -> String {
        var text = option.short.map { " -s \($0)" } ?? ""
        text += " -l \(option.name.rawValue)"
        switch option.value {
        case nil: break
        case .text, .number: text += " -x"
        case .file: text += " -r -F"
        case .directory: text += " -x -a '(__fish_complete_directories)'"
        case .word(_, let words): text += " -x -a \(quote(words.joined(separator: " ")))"
        }
        return text + " -d \(quote(option.help))\n"
    }

    /// A word between single quotes, for all three shells.
    private static func quote(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
}
