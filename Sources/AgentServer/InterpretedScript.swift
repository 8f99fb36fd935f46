import LinuxSystem

/// The script that an interpreter runs, as its command line says. The process itself says so: whoever can execute an
/// interpreter can be any script. It keeps honest scripts apart, and no others.
enum InterpretedScript {
    /// How an interpreter's options are read.
    private struct Interpreter {
        /// The beginning of its name; behind it may stand a version.
        let name: String
        /// Letters of options that stand for code or a module in place of a script.
        let code: Set<Character>
        /// Options whose value is the next word.
        let withValue: Set<String>
        /// Long options that stand for code.
        let longCode: Set<String>
        /// The option in front of a script, where it takes one.
        let scriptOption: String?

        init(
            _ name: String, code: String = "", withValue: Set<String> = [], longCode: Set<String> = [],
            scriptOption: String? = nil
        ) {
            self.name = name
            self.code = Set(code)
            self.withValue = withValue
            self.longCode = longCode
            self.scriptOption = scriptOption
        }
    }

    private static let interpreters: [Interpreter] = {
        let shellValues: Set<String> = ["-o", "+o", "-O", "+O", "--rcfile", "--init-file"]
        return [
            Interpreter("python", code: "cm", withValue: ["-W", "-X", "-Q", "--check-hash-based-pycs"]),
            Interpreter("pypy", code: "cm", withValue: ["-W", "-X"]),
            Interpreter(
                "nodejs", code: "ep", withValue: ["-r", "--require", "--import", "--loader", "-C", "--conditions"],
                longCode: ["--eval", "--print", "--test"]),
            Interpreter(
                "node", code: "ep", withValue: ["-r", "--require", "--import", "--loader", "-C", "--conditions"],
                longCode: ["--eval", "--print", "--test"]),
            Interpreter("ruby", code: "e", withValue: ["-I", "-r", "-C", "-E"]),
            Interpreter("perl", code: "eE", withValue: ["-I"]),
            Interpreter("bash", code: "cs", withValue: shellValues),
            Interpreter("dash", code: "cs", withValue: shellValues),
            Interpreter("zsh", code: "cs", withValue: shellValues),
            Interpreter("ksh", code: "cs", withValue: shellValues),
            Interpreter("sh", code: "cs", withValue: shellValues),
            Interpreter("php", code: "rB", withValue: ["-c", "-d", "-z"], scriptOption: "-f"),
            Interpreter("lua", code: "e", withValue: ["-l"]),
            Interpreter(
                "java",
                withValue: [
                    "-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules", "-m", "--module",
                ],
                scriptOption: "-jar"),
        ]
    }()

    /// The absolute path of the script of a process; nil when its executable is no interpreter that is known, or runs no
    /// script that is a file.
    static func path(_ process: Int32, executable: FilePath, _ system: any SystemCalls) -> FilePath? {
        guard let interpreter = interpreter(executable.lastComponent),
            let words = ProcessFacts.words(of: process, system),
            let script = script(interpreter, words.dropFirst())
        else { return nil }
        let directory = ProcessFacts.currentDirectory(of: process)
        guard let path = script.isAbsolute ? script : directory.map({ $0.appending(script) }),
            (try? system.status(of: path, in: LinuxSystem.currentDirectory, followLinks: true))?.kind == .regular
        else { return nil }
        return ProcessFacts.realPath(path)
    }

    private static func interpreter(_ name: FilePath) -> Interpreter? {
        guard let text = name.text else { return nil }
        return interpreters.first { interpreter in
            text.hasPrefix(interpreter.name)
                && text.dropFirst(interpreter.name.count).allSatisfy { $0.isNumber || $0 == "." || $0 == "-" }
        }
    }

    private static func script(_ interpreter: Interpreter, _ words: ArraySlice<FilePath>) -> FilePath? {
        var rest = words
        while let word = rest.popFirst() {
            guard let text = word.text, text.count > 1, text.hasPrefix("-") || text.hasPrefix("+") else {
                // Standard input.
                if word == "-" { return nil }
                // A class of Java is no file.
                return interpreter.scriptOption == "-jar" ? nil : word
            }
            if text == "--" { return interpreter.scriptOption == "-jar" ? nil : rest.first }
            if text == interpreter.scriptOption { return rest.first }
            if interpreter.longCode.contains(where: { text == $0 || text.hasPrefix($0 + "=") }) { return nil }
            if interpreter.withValue.contains(text) {
                _ = rest.popFirst()
                continue
            }
            // Letters of several options may stand in one word.
            if !text.hasPrefix("--"), interpreter.scriptOption != "-jar",
                text.dropFirst().prefix(while: \.isLetter).contains(where: { interpreter.code.contains($0) })
            {
                return nil
            }
        }
        return nil
    }
}
