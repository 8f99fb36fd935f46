import LinuxSystem
import Testing

@testable import candado

@Suite("Argument parser")
struct ArgumentParserTests {
    static func arguments(_ words: [String]) -> [Argument] { words.compactMap { Argument($0) } }

    static func parse(_ words: String...) throws -> ParsedCommandLine {
        try CommandTable.parser.parse(arguments(words))
    }

    static func invocation(_ words: [String]) throws -> Invocation {
        guard case .run(let invocation) = try CommandTable.parser.parse(arguments(words)) else {
            throw UsageError("not an invocation")
        }
        return invocation
    }

    @Test("The same command is read from every order and spelling of its options")
    func spellings() throws {
        let spellings: [[String]] = [
            ["protect", "--class", "complete", "-r", "a", "b"],
            ["protect", "--class=complete", "--recursive", "a", "b"],
            ["protect", "a", "-r", "b", "--class", "complete"],
            ["--json", "protect", "a", "b", "--class=complete", "-r"],
            ["--no-agent", "protect", "-r", "--class=complete", "--", "a", "b"],
        ]
        for words in spellings {
            let invocation = try Self.invocation(words)
            #expect(invocation.command.name == .protect, "\(words)")
            #expect(invocation.value(.protectionClass)?.text == "complete", "\(words)")
            #expect(invocation.has(.recursive), "\(words)")
            #expect(invocation.operands.map(\.text) == ["a", "b"], "\(words)")
            #expect(invocation.has(.json) == words.contains("--json"), "\(words)")
        }
    }

    @Test("Every command of the table can be called by its words", arguments: CommandName.allCases)
    func everyCommand(_ name: CommandName) throws {
        let definition = try #require(CommandTable.commands.first { $0.name == name })
        var words = name.words
        for operand in definition.operands where operand.isRequired {
            if case .word(_, let known) = operand.kind { words.append(known[0]) } else { words.append("x") }
        }
        #expect(try Self.invocation(words).command.name == name)
    }

    @Test("Behind two dashes everything is an operand, and a single dash is one everywhere")
    func dashes() throws {
        #expect(
            try Self.invocation(["protect", "--", "-r", "--json", "--"]).operands.map(\.text) == ["-r", "--json", "--"])
        #expect(try Self.invocation(["protect", "-", "x"]).operands.first?.isDash == true)
        #expect(try Self.invocation(["read", "x", "-"]).operands.count == 2)
    }

    @Test("A value is taken as it is, even when it looks like an option or holds an equals sign")
    func values() throws {
        #expect(try Self.invocation(["--home", "--json", "status"]).value(.home)?.text == "--json")
        #expect(try Self.invocation(["--home=a=b", "status"]).value(.home)?.text == "a=b")
        #expect(try Self.invocation(["--passcode-fd", "0", "status"]).number(.passcodeDescriptor) == 0)
    }

    @Test("Bytes that are not UTF-8 reach operands and values unchanged")
    func bytes() throws {
        let path = try #require(FilePath(bytes: [0x61, 0xFF, 0x0A, 0xC3]))
        let home = try #require(FilePath(bytes: Array("--home=".utf8) + path.bytes))
        let words = [Argument(home), Argument("read"), Argument(path)]
        guard case .run(let invocation) = try CommandTable.parser.parse(words.compactMap { $0 }) else {
            Issue.record("not an invocation")
            return
        }
        #expect(invocation.operands.map(\.bytes) == [path.bytes])
        #expect(invocation.value(.home)?.bytes == path.bytes)
        #expect(throws: UsageError.self) { _ = try invocation.text(.home) }
    }

    static let mistakes: [([String], String, String?)] = [
        ([], "no command given", "run 'candado --help'"),
        (["--json"], "no command given", "run 'candado --help'"),
        (["sttus"], "unknown command 'sttus'", "did you mean 'status'?"),
        (["satus"], "unknown command 'satus'", "did you mean 'status'?"),
        (["unprot"], "unknown command 'unprot'", "did you mean 'unprotect'?"),
        (["qqqqqq"], "unknown command 'qqqqqq'", "run 'candado --help'"),
        (["mount"], "'mount' is not in this build", nil),
        (["config"], "'config' needs another word: 'get' or 'set'", "run 'candado config --help'"),
        (["config", "gte"], "'config' has no command 'gte'", "did you mean 'config get'?"),
        (["protect", "--recurse", "x"], "unknown option '--recurse'", "did you mean '--recursive'?"),
        (["protect", "--rekey", "x"], "unknown option '--rekey'", "run 'candado protect --help'"),
        (["--class", "none", "write"], "unknown option '--class' before the command", "write it behind the command"),
        (["protect", "-q", "x"], "unknown option '-q'", "write '--' before an operand that begins with a dash"),
        (["protect", "-rq", "x"], "unknown option '-q'", "write '--' before an operand that begins with a dash"),
        (["protect", "--class"], "'--class' needs a value", "write '--class C'"),
        (["protect", "--class=", "x"], "'--class' needs a value", "write '--class C'"),
        (["protect", "--recursive=1", "x"], "'--recursive' takes no value", nil),
        (["protect", "--class", "Complete", "x"], "unknown class 'Complete'", "did you mean 'complete'?"),
        (["protect", "--class", "none", "--class", "none", "x"], "'--class' is given twice", nil),
        (["--passcode-fd", "-1", "status"], "'--passcode-fd' needs a whole number, not '-1'", nil),
        (
            ["--passcode-fd", "99999999999999999999", "status"],
            "'--passcode-fd' needs a whole number, not '99999999999999999999'", nil
        ),
        (
            ["--passcode-fd", "3", "--passcode-file", "f", "status"],
            "'--passcode-file' and '--passcode-fd' cannot be given together", nil
        ),
        (
            ["init", "--no-recovery-key", "--recovery-key-file", "f"],
            "'--no-recovery-key' and '--recovery-key-file' cannot be given together", nil
        ),
        (["set-class", "complete"], "'set-class' needs PATH", nil),
        (["set-class"], "'set-class' needs CLASS", nil),
        (["set-class", "x", "y"], "unknown class 'x'", nil),
        (["write", "a", "b"], "unexpected operand 'b'", "usage: candado write [--class C] PATH"),
        (["write", ""], "an operand is empty where PATH should be", nil),
        (["class"], "'class' needs PATH", nil),
        (["class", "--stdin0", "x"], "operands cannot be given beside '--stdin0'", nil),
        (["audit", "--leaks", "x"], "'--leaks' is not in this build", nil),
    ]

    @Test("Each mistake has its own sentence", arguments: mistakes)
    func mistake(_ words: [String], _ message: String, _ hint: String?) {
        #expect {
            _ = try CommandTable.parser.parse(Self.arguments(words))
        } throws: { error in
            guard let error = error as? UsageError else { return false }
            return error.message == message && (hint == nil || error.hint == hint)
        }
    }

    @Test("Help and version win over what is missing, but not over what is wrong")
    func helpWins() throws {
        guard case .help(.command(let command)) = try Self.parse("protect", "--help") else {
            Issue.record("no help for a command")
            return
        }
        #expect(command.name == .protect)
        guard case .help(.group("passcode")) = try Self.parse("passcode", "--help") else {
            Issue.record("no help for a group")
            return
        }
        guard case .help(.overview) = try Self.parse("--help"), case .version = try Self.parse("--version") else {
            Issue.record("no help or version alone")
            return
        }
        #expect(throws: UsageError.self) { _ = try Self.parse("protect", "--bogus", "--help") }
    }

    @Test("Advice names a word only when it is near")
    func nearest() {
        let known = ["status", "set-class", "class", "read", "repair"]
        #expect(ArgumentParser.nearest("statsu", of: known) == "status")
        #expect(ArgumentParser.nearest("raed", of: known) == "read")
        #expect(ArgumentParser.nearest("clas", of: known) == "class")
        #expect(ArgumentParser.nearest("x", of: known) == nil)
        #expect(ArgumentParser.nearest("wread", of: known) == "read")
        #expect(ArgumentParser.nearest("unrelated", of: known) == nil)
        #expect(ArgumentParser.nearest(String(repeating: "s", count: 1000), of: known) == nil)
    }
}
