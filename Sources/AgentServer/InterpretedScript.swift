import LinuxSystem

/// The script that an interpreter runs, as its command line says. The process itself says so: whoever can execute an
/// interpreter can be any script. It keeps honest scripts apart, and no others.
///
/// Only an absolute path counts: what a relative one meant when the program began cannot be told any more. And only a command
/// line that is understood word for word: where in doubt, it is the interpreter itself, each time again.
enum InterpretedScript {
    /// The absolute path of the script of a process; nil when its executable is no interpreter that is known, or runs no
    /// script that is a file with an absolute path.
    static func path(_ process: Int32, executable: FilePath, _ system: any SystemCalls) -> FilePath? {
        guard let words = ProcessFacts.words(of: process, system),
            let script = script(executable.lastComponent, words.dropFirst()), script.isAbsolute,
            (try? system.status(of: script, in: LinuxSystem.currentDirectory, followLinks: true))?.kind == .regular
        else { return nil }
        return ProcessFacts.realPath(script)
    }

    /// What the words behind the first of a command line say is the script; nil for code, modules, standard input, and
    /// whatever is not understood.
    static func script(_ executable: FilePath, _ words: ArraySlice<FilePath>) -> FilePath? {
        guard let name = executable.text,
            let interpreter = CommandLineGrammar.known.first(where: { $0.isName(name) })
        else { return nil }
        var rest = words
        while let word = rest.popFirst() {
            guard let text = word.text else { return interpreter.scriptOption == nil ? word : nil }
            switch interpreter.meaning(of: text) {
            case .script: return word
            case .scriptIsNext: return rest.first
            case .option(let values):
                for _ in 0..<values where rest.popFirst() == nil { return nil }
            case .unknown: return nil
            }
        }
        return nil
    }
}

/// How an interpreter reads the words before its script.
struct CommandLineGrammar {
    /// What a word is.
    enum Meaning: Hashable {
        case script
        /// The next word is it.
        case scriptIsNext
        /// An option, and so many words behind it are its values.
        case option(values: Int)
        /// Code, a module, standard input, or what nobody here knows.
        case unknown
    }

    /// The beginnings of its name; behind it may stand a version.
    let names: [String]
    /// Letters of options without a value.
    let flags: Set<Character>
    /// Letters whose value is the rest of the word, or else the next word.
    let valued: Set<Character>
    /// Letters whose value is the rest of the word, which may be empty.
    let attached: Set<Character>
    /// Letters whose value is the next word, wherever in a word they stand.
    let next: Set<Character>
    /// Whole words without a value, and beginnings of words that hold theirs.
    let longFlags: Set<String>
    let longBeginnings: [String]
    /// Whole words whose value is the next one.
    let longValued: Set<String>
    /// The option in front of a script, where nothing else tells it.
    let scriptOption: String?
    /// Whether `+` begins options too.
    let hasPlus: Bool

    init(
        _ names: [String], flags: String = "", valued: String = "", attached: String = "", next: String = "",
        longFlags: Set<String> = [], longBeginnings: [String] = [], longValued: Set<String> = [],
        scriptOption: String? = nil, hasPlus: Bool = false
    ) {
        self.names = names
        self.flags = Set(flags)
        self.valued = Set(valued)
        self.attached = Set(attached)
        self.next = Set(next)
        self.longFlags = longFlags
        self.longBeginnings = longBeginnings
        self.longValued = longValued
        self.scriptOption = scriptOption
        self.hasPlus = hasPlus
    }

    static let known: [CommandLineGrammar] = [
        CommandLineGrammar(
            ["python", "pypy"], flags: "bBdEhiIOPqRsStuvVx3", valued: "WXQ",
            longValued: ["--check-hash-based-pycs"]),
        CommandLineGrammar(
            ["nodejs", "node"], flags: "ci",
            longFlags: ["--check", "--interactive", "--inspect", "--inspect-brk", "--trace-warnings", "--expose-gc"],
            longBeginnings: ["--no-", "--enable-", "--experimental-"],
            longValued: ["-r", "--require", "--import", "--loader", "-C", "--conditions"]),
        CommandLineGrammar(["ruby"], flags: "acdlnpswvyUh", valued: "IrCE", attached: "WKTxF0i"),
        CommandLineGrammar(["perl"], flags: "acflnpstTuUvwWX0123456789", valued: "I", attached: "MmidFDxCV"),
        CommandLineGrammar(
            ["bash", "dash", "zsh", "ksh", "sh"], flags: "abefhiklmnprtuvxBCDEHPTV", next: "oO",
            longFlags: ["--login", "--noprofile", "--norc", "--posix", "--restricted", "--verbose", "--noediting"],
            longValued: ["--rcfile", "--init-file"], hasPlus: true),
        CommandLineGrammar(["php"], flags: "Cenqw", valued: "cdz"),
        CommandLineGrammar(["lua"], flags: "EW", valued: "l"),
        CommandLineGrammar(
            ["java"],
            longFlags: ["-server", "-client", "-showversion", "--show-version", "--enable-preview", "-d64"],
            longBeginnings: [
                "-D", "-X", "-ea", "-esa", "-da", "-dsa", "-enableassertions", "-disableassertions", "-verbose",
                "-javaagent:", "-agentlib:", "-agentpath:", "-splash:",
            ],
            longValued: [
                "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "--add-opens",
                "--add-exports", "--add-reads", "--patch-module", "--limit-modules", "--upgrade-module-path",
            ],
            scriptOption: "-jar"),
    ]

    /// True for one of its names, with or without a version.
    func isName(_ text: String) -> Bool {
        names.contains { name in
            text.hasPrefix(name) && text.dropFirst(name.count).allSatisfy { $0.isNumber || $0 == "." || $0 == "-" }
        }
    }

    func meaning(of word: String) -> Meaning {
        if word == scriptOption { return .scriptIsNext }
        guard word.hasPrefix("-") || (hasPlus && word.hasPrefix("+")) else {
            // Without that option a word is a class of Java, or a file of arguments.
            return scriptOption == nil ? .script : .unknown
        }
        if word == "--" { return scriptOption == nil ? .scriptIsNext : .unknown }
        if longFlags.contains(word) { return .option(values: 0) }
        if longValued.contains(word) { return .option(values: 1) }
        if longBeginnings.contains(where: { word.hasPrefix($0) }) { return .option(values: 0) }
        if let equals = word.firstIndex(of: "="), longValued.contains(String(word[..<equals])) {
            return .option(values: 0)
        }
        guard !word.hasPrefix("--"), word.count > 1 else { return .unknown }
        return meaning(ofLetters: word.dropFirst())
    }

    /// Several letters may stand in one word.
    private func meaning(ofLetters letters: Substring) -> Meaning {
        var rest = letters
        var values = 0
        while let letter = rest.popFirst() {
            if flags.contains(letter) { continue }
            if next.contains(letter) {
                values += 1
            } else if valued.contains(letter) {
                return .option(values: rest.isEmpty ? values + 1 : values)
            } else if attached.contains(letter) {
                return .option(values: values)
            } else {
                return .unknown
            }
        }
        return .option(values: values)
    }
}
