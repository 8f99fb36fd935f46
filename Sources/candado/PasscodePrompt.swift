import LinuxSystem
import ProtectionModel
import SecretMemory

/// Asks for passcodes and recovery keys. The bytes go from the kernel into secret memory and nowhere else.
struct PasscodePrompt: Sendable {
    /// How often a person may try.
    static let triesOfPerson = 3
    /// The most bytes that any source may give.
    static let maximumCount = 4096
    /// What a person is told who typed two things.
    static func differ(_ noun: String) -> String { "the two \(noun)s differ" }

    private let system: any SystemCalls
    private let console: Console
    private let clock: any SystemClock

    /// Joins the three.
    init(system: any SystemCalls, console: Console, clock: any SystemClock) {
        self.system = system
        self.console = console
        self.clock = clock
    }

    /// Reads a passcode and hands it to `body`. Where a person was asked, a wrong one may be tried again, three times in
    /// all; any other source gets one try. `explanation` is shown where there is room for it.
    func withPasscode<R>(
        _ source: PasscodeSource, prompt: String,
        explanation: String = "Candado needs the passcode that unlocks your files.",
        _ body: (borrowing SecretBytes) throws -> R
    ) throws -> R {
        var question = SecretQuestion(prompt: prompt, explanation: explanation)
        var tries = 0
        while true {
            tries += 1
            let passcode = try read(source, question)
            do {
                return try body(passcode)
            } catch let error as ProtectionError {
                guard case .wrongPasscode = error.code, source.isPerson, tries < Self.triesOfPerson else {
                    throw error
                }
                question.complaint = error.message
            }
        }
    }

    /// Reads a new passcode, twice where a person is asked.
    func readNew(_ source: PasscodeSource, prompt: String) throws -> SecretBytes {
        try readTwice(
            source,
            SecretQuestion(prompt: prompt, explanation: "Choose the passcode that unlocks your files."))
    }

    /// Reads what is new, twice where a person is asked.
    func readTwice(_ source: PasscodeSource, _ first: SecretQuestion) throws -> SecretBytes {
        var question = first
        guard source.isPerson else { return try read(source, question) }
        let again = SecretQuestion(
            prompt: "The same again: ", explanation: "Type the new \(question.noun) again.", noun: question.noun)
        question.repeatPrompt = again.prompt
        var tries = 0
        while true {
            tries += 1
            var isRepeated = false
            let first = try read(source, question, &isRepeated)
            if isRepeated { return first }
            let second = try read(source, again)
            if first.equals(second) { return first }
            guard tries < Self.triesOfPerson else {
                throw CommandFailure(.failed, Self.differ(question.noun), hints: ["nothing was changed"])
            }
            question.complaint = Self.differ(question.noun)
        }
    }

    /// True when there is somebody to ask.
    var hasTerminal: Bool { Terminal(system) != nil }

    /// Shows a secret on the terminal and nowhere else.
    func showSecret(before: String, _ secret: borrowing SecretBytes, after: String) throws {
        guard let terminal = Terminal(system) else {
            throw ProtectionError(.noPasscodeSource, "there is no terminal to show a secret on")
        }
        terminal.show(before)
        try terminal.show(secret)
        terminal.show(after)
    }

    /// False when a person would have to be asked and there is neither a terminal nor a display to do so.
    func canAsk(_ source: PasscodeSource) -> Bool { source != .person || hasTerminal || programOfDisplay != nil }

    /// What asks where there is a display.
    private var programOfDisplay: FilePath? {
        PinentryProgram.hasDisplay ? ProgramSearch.find(PinentryProgram.name, system) : nil
    }

    /// Reads once. Throws `noPasscodeSource` where nobody can be asked, and `invalidArgument` for an empty answer.
    func read(_ source: PasscodeSource, _ question: SecretQuestion) throws -> SecretBytes {
        var isRepeated = false
        return try read(source, question, &isRepeated)
    }

    /// The same, and whether the person typed it twice.
    private func read(
        _ source: PasscodeSource, _ question: SecretQuestion, _ isRepeated: inout Bool
    ) throws -> SecretBytes {
        let answer: SecretBytes?
        switch source {
        case .person:
            answer = try askPerson(question, &isRepeated)
        case .pinentry(let name):
            guard let program = ProgramSearch.find(name, system) else {
                throw ProtectionError(.noPasscodeSource, "there is no such program to ask with", path: name)
            }
            answer = try ask(by: program, question, &isRepeated)
        case .file(let path), .credential(let path):
            answer = try readFile(path, isOfManager: source == .credential(path))
        case .descriptor(let number):
            answer = try readAll(number)
        }
        guard let answer else { throw ProtectionError(.invalidArgument, "the \(question.noun) is empty") }
        return answer
    }

    private func askPerson(_ question: SecretQuestion, _ isRepeated: inout Bool) throws -> SecretBytes? {
        if let terminal = Terminal(system) {
            if let complaint = question.complaint { console.error(complaint) }
            return try terminal.readSecretLine(prompt: question.prompt)
        }
        guard let program = programOfDisplay else {
            throw ProtectionError(.noPasscodeSource, "a \(question.noun) is needed and there is no terminal to ask on")
        }
        return try ask(by: program, question, &isRepeated)
    }

    private func ask(
        by program: FilePath, _ question: SecretQuestion, _ isRepeated: inout Bool
    ) throws -> SecretBytes? {
        let answer = try PinentryDialog.ask(program, question, system, clock)
        isRepeated = answer.isRepeated
        return answer.takeSecret()
    }

    /// The service manager gives its own files to one user by other means than their permissions.
    private func readFile(_ path: FilePath, isOfManager: Bool) throws -> SecretBytes? {
        let descriptor: Descriptor
        do throws(SystemError) { descriptor = try system.openFile(path, [.read]) } catch {
            throw ProtectionError(
                .system(error.errorNumber), "the file of the passcode cannot be opened", path: path, cause: error)
        }
        let status = try system.status(descriptor.number)
        if !isOfManager, status.kind == .regular, status.permissions & 0o077 != 0 {
            console.warning("others can read \(path.quoted)")
        }
        return try readAll(descriptor.number)
    }

    /// Everything up to the end, less one newline at the end. Nil for nothing.
    private func readAll(_ descriptor: Int32) throws -> SecretBytes? {
        var buffer = try SecretBytes(count: Self.maximumCount + 2)
        let system = self.system
        var count = 0
        while count < buffer.count {
            guard Interrupts.waitForInput(descriptor) else { throw ProtectionError(.cancelled, "interrupted") }
            let start = count
            let more = try buffer.withUnsafeMutableBytes { bytes -> Int in
                do throws(SystemError) {
                    return try system.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
                } catch {
                    throw ProtectionError(.system(error.errorNumber), "the passcode cannot be read", cause: error)
                }
            }
            if more == 0 { break }
            count += more
        }
        if count > 0, buffer.withUnsafeBytes({ $0[count - 1] }) == UInt8(ascii: "\n") { count -= 1 }
        guard count <= Self.maximumCount else {
            throw ProtectionError(.invalidArgument, "the passcode is longer than \(Self.maximumCount) bytes")
        }
        return try buffer.first(count)
    }
}
