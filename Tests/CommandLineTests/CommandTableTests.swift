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
        for option in command.options where !option.isInThisBuild { #expect(!text.contains(option.usage)) }
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

    @Test("The classes of the manual are the classes of the table")
    func classes() {
        #expect(ManualPage.classes.map(\.0) == CommandTable.classNames)
    }
}
