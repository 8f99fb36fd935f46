import Foundation
import Testing

@testable import candado

@Suite("Command table")
struct CommandTableTests {
    static let documentation: String = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return (try? String(contentsOf: root.appending(path: "docs/cli.md"), encoding: .utf8)) ?? ""
    }()

    static let shown = CommandTable.commands.filter { !$0.isHidden }

    @Test("Every command name has exactly one row")
    func oneRowEach() {
        for name in CommandName.allCases {
            #expect(CommandTable.commands.filter { $0.name == name }.count == 1, "\(name.rawValue)")
        }
        #expect(CommandTable.commands.count == CommandName.allCases.count)
    }

    @Test("docs/cli.md lists exactly the commands of the table, as they are written in help")
    func documentedCommands() throws {
        let block = try #require(
            Self.documentation.split(separator: "```", omittingEmptySubsequences: false).dropFirst().first)
        let listed = block.split(separator: "\n").map(String.init).filter { !$0.isEmpty }
        #expect(listed == Self.shown.map(\.synopsis))
    }

    @Test("docs/cli.md lists every option of every command", arguments: CommandTable.globalOptions.map(\.usage))
    func documentedOptions(_ usage: String) {
        #expect(Self.documentation.contains("| `\(usage)` |"))
    }

    @Test("docs/cli.md gives every exit status its meaning", arguments: ExitStatus.allCases)
    func documentedStatuses(_ status: ExitStatus) {
        #expect(Self.documentation.contains("\n| \(status.rawValue) | \(status.meaning) |\n"))
    }

    @Test("What this build lacks is named in docs/cli.md and nowhere in help")
    func missing() {
        let help = Help.text(.overview)
        for word in CommandTable.missingCommands.keys {
            #expect(Self.documentation.contains("`\(word)`"))
            #expect(!help.contains("\n  \(word) "))
        }
    }

    @Test("No command has two options of one name or letter, its own and the common ones together")
    func distinctOptions() {
        for command in CommandTable.commands {
            let options = command.options + CommandTable.globalOptions
            #expect(Set(options.map(\.name)).count == options.count, "\(command.name.rawValue)")
            let letters = options.compactMap(\.short)
            #expect(Set(letters).count == letters.count, "\(command.name.rawValue)")
        }
    }

    @Test("Only the last operand repeats, and nothing required follows what may be left out")
    func operandOrder() {
        for command in CommandTable.commands {
            let repeating = command.operands.dropLast().filter(\.repeats)
            #expect(repeating.isEmpty, "\(command.name.rawValue)")
            let required = command.operands.map(\.isRequired)
            #expect(required == required.sorted { $0 && !$1 }, "\(command.name.rawValue)")
        }
    }

    @Test("Help fits 80 columns, examples apart, and names every option and status", arguments: CommandName.allCases)
    func help(_ name: CommandName) throws {
        let command = try #require(CommandTable.commands.first { $0.name == name })
        let text = Help.text(.command(command))
        let examples = Set(command.examples.map { "  " + $0.line })
        for line in text.split(separator: "\n") where !examples.contains(String(line)) {
            #expect(line.count <= 80, "\(line)")
        }
        for option in command.shownOptions { #expect(text.contains(option.usage)) }
        for option in command.options where !option.isInThisBuild { #expect(!text.contains("\(option.usage) ")) }
        for status in command.allStatuses { #expect(text.contains("\n  \(status.rawValue) ")) }
    }

    @Test("There is a manual page for every command that help shows, and for the program")
    func manualPages() {
        let names = ManualPage.all().map { $0.name.description }
        #expect(names == ["candado.1"] + Self.shown.map { "candado-" + $0.name.words.joined(separator: "-") + ".1" })
        for page in ManualPage.all() {
            #expect(page.text.hasPrefix(".TH CANDADO"))
            // A line of text that begins with a dot would be taken for a request.
            for line in page.text.split(separator: "\n") where line.hasPrefix(".") {
                #expect([".TH", ".SH", ".PP", ".TP", ".B ", ".BR"].contains(String(line.prefix(3))), "\(line)")
            }
        }
    }

    @Test("Completions know every command and option of help, and nothing hidden", arguments: CompletionShell.allCases)
    func completions(_ shell: CompletionShell) {
        let script = Completions.script(shell)
        for command in Self.shown {
            for word in command.name.words { #expect(script.contains(word)) }
            for option in command.shownOptions {
                let written = shell == .fish ? "-l \(option.name.rawValue)" : "--\(option.name.rawValue)"
                #expect(script.contains(written), "\(written)")
            }
        }
        #expect(!script.contains("generate"))
        #expect(!script.contains("--leaks"))
    }

    @Test("Every status that a scenario shows is in the help of its command")
    func scenarioStatuses() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Scenarios")
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var seen: Set<String> = []
        for case let file as URL in files where file.pathExtension == "txt" {
            var command: CommandDefinition?
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                if line.hasPrefix("$") {
                    command = Self.lastCommand(line)
                } else if line.hasPrefix("? "), let command, let status = Int32(line.dropFirst(2)), status < 128 {
                    #expect(
                        command.allStatuses.map(\.rawValue).contains(status),
                        "\(command.name.rawValue): \(status), \(file.lastPathComponent)")
                    seen.insert("\(command.name.rawValue) \(status)")
                }
            }
        }
        // So that the search above is known to find what there is.
        #expect(seen.isSuperset(of: ["protect 15", "read 13", "write 10", "status 14", "audit 3", "passcode set 12"]))
    }

    /// The command whose status a line of a scenario ends with; nil when that is another program's.
    private static func lastCommand(_ line: Substring) -> CommandDefinition? {
        let last = line.split(separator: " ", maxSplits: 1).last?.split(whereSeparator: { ";|&'\"".contains($0) }).last
        let words = (last ?? "").split(separator: " ").map(String.init)
        guard let start = words.firstIndex(of: "candado") else { return nil }
        var rest = words[(start + 1)...]
        while let word = rest.first, word.hasPrefix("-") { rest = rest.dropFirst(word == "--home" ? 2 : 1) }
        return CommandTable.commands.first { rest.starts(with: $0.name.words) }
    }

    @Test("What opens the keybag can find it damaged or too new, and what takes a passcode can be given a wrong one")
    func statusesByKind() {
        for command in CommandTable.commands where !command.isHidden && command.name != .audit {
            #expect(command.allStatuses.contains(.damaged) && command.allStatuses.contains(.unsupported))
            let asks = ![
                .initialize, .status, .lock, .agent, .configGet, .configSet, .doctor, .protectionClass,
            ].contains(command.name)
            #expect(command.allStatuses.contains(.wrongPasscode) == asks, "\(command.name.rawValue)")
        }
    }

    @Test("The classes of the manual are the classes of the table")
    func classes() {
        #expect(ManualPage.classes.map(\.0) == CommandTable.classNames)
    }
}
