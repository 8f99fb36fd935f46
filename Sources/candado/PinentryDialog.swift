import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// What a person is asked for a secret with.
struct SecretQuestion: Sendable, Hashable {
    /// The prompt, ended by a colon and a space.
    var prompt: String
    /// A sentence on what it is for, where there is room for one.
    var explanation: String
    /// What was wrong with the answer before, if there was one.
    var complaint: String?
    /// The prompt for the same answer again, where that can be asked for at once.
    var repeatPrompt: String?
    /// What is asked for.
    var noun = "passcode"
}

/// What a pinentry program answered.
struct PinentryAnswer: ~Copyable {
    /// Nil for an empty answer.
    let secret: SecretBytes?
    /// True when the program had it typed twice.
    let isRepeated: Bool

    /// The secret alone.
    consuming func takeSecret() -> SecretBytes? { secret }
}

/// Asks one question by a pinentry program: one process a question.
struct PinentryDialog: ~Copyable {
    /// Seconds that the program may take for what needs no person.
    static let patience = 60.0
    /// More lines than this for one answer are not an answer.
    private static let mostLines = 1000
    /// The longest line that the protocol allows to send.
    private static let longestCommand = 1000

    private let child: PinentryProcess
    private var reader: PinentryReader
    private let system: any SystemCalls
    private let clock: any SystemClock
    private var isRepeated = false

    private init(_ child: PinentryProcess, _ system: any SystemCalls, _ clock: any SystemClock) throws {
        self.child = child
        self.reader = try PinentryReader()
        self.system = system
        self.clock = clock
    }

    /// Starts the program, asks, and returns when it has ended.
    ///
    /// Throws `noPasscodeSource` when it cannot be started or has nowhere to ask, `cancelled` when the person said no or a
    /// signal came, and `CommandFailure` for a program that ends early or talks nonsense.
    static func ask(
        _ program: FilePath, _ question: SecretQuestion, _ system: any SystemCalls, _ clock: any SystemClock
    ) throws -> PinentryAnswer {
        var terminal = Terminal(system)
        let isOnTerminal = terminal != nil
        terminal?.rememberMode()
        defer { terminal?.restoreMode() }
        let child: PinentryProcess
        do throws(SystemError) { child = try PinentryProcess(program, system) } catch {
            throw ProtectionError(
                .noPasscodeSource, "the pinentry program cannot be started", path: program, cause: error)
        }
        var hasAnswered = false
        defer { child.end(hasSaidGoodbye: hasAnswered) }
        var dialog = try PinentryDialog(child, system, clock)
        let answer = try dialog.converse(question, isOnTerminal: isOnTerminal)
        hasAnswered = true
        return answer
    }

    private mutating func converse(_ question: SecretQuestion, isOnTerminal: Bool) throws -> PinentryAnswer {
        try expectOK(try reply())
        for option in Self.options(isOnTerminal: isOnTerminal) { _ = try perform("OPTION \(option)") }
        _ = try perform("SETTITLE", "Candado")
        try expectOK(try perform("SETDESC", question.explanation))
        try expectOK(try perform("SETPROMPT", question.prompt.trimmed))
        if let complaint = question.complaint { try expectOK(try perform("SETERROR", complaint)) }
        if let again = question.repeatPrompt, case .ok = try perform("SETREPEAT", again.trimmed) {
            _ = try perform("SETREPEATERROR", PasscodePrompt.differ(question.noun))
        }
        try send("GETPIN")
        let outcome = try reply(ofPerson: true)
        if case .failed(let number) = outcome { throw Self.refusal(number) }
        let secret = try reader.decodedAnswer()
        // The answer is there: how it takes its leave does not matter.
        try? send("BYE")
        return PinentryAnswer(secret: consume secret, isRepeated: isRepeated)
    }

    // MARK: Lines

    private mutating func perform(_ command: String, _ text: String) throws -> PinentryLine {
        try perform("\(command) \(Self.encode(text))")
    }

    private mutating func perform(_ line: String) throws -> PinentryLine {
        try send(line)
        return try reply()
    }

    private func send(_ line: String) throws {
        do throws(SystemError) {
            try child.write(Array((line.utf8.prefix(Self.longestCommand - 1))) + [UInt8(ascii: "\n")])
        } catch {
            throw PinentryReader.failure("ended before it was done")
        }
    }

    /// Reads up to `ok` or `failed`. A person may take any time to answer, a program may not.
    private mutating func reply(ofPerson isAnswer: Bool = false) throws -> PinentryLine {
        var end = isAnswer ? .infinity : clock.secondsSinceBoot + Self.patience
        var lines = 0
        while lines < Self.mostLines {
            guard let line = try reader.nextLine() else {
                try readMore(until: end)
                continue
            }
            lines += 1
            switch line {
            case .ok, .failed: return line
            case .data:
                guard isAnswer else { throw PinentryReader.failure("answered what was not asked") }
                end = clock.secondsSinceBoot + Self.patience
            case .repeated: isRepeated = true
            case .other: break
            }
        }
        throw PinentryReader.failure("does not come to an end")
    }

    private mutating func readMore(until end: Double) throws {
        let clock = self.clock
        guard Interrupts.waitForInput(child.descriptor, until: { clock.secondsSinceBoot >= end }) else {
            if Interrupts.isRequested { throw ProtectionError(.cancelled, "interrupted") }
            throw PinentryReader.failure("does not answer")
        }
        // An error of the socket is an end too: what was sent was not read.
        guard try readOnce() else { throw PinentryReader.failure("ended before it was done") }
    }

    private mutating func readOnce() throws -> Bool {
        do throws(SystemError) {
            return try reader.fill(from: child.descriptor, system)
        } catch {
            guard error.errorNumber == ECONNRESET else { throw error }
            return false
        }
    }

    private func expectOK(_ line: PinentryLine) throws {
        if case .failed(let number) = line { throw Self.refusal(number) }
    }

    /// The low 16 bits are a code of libgpg-error, what is above says who made it.
    private static func refusal(_ number: UInt32) -> ProtectionError {
        switch number & 0xFFFF {
        case 62: ProtectionError(.cancelled, "nobody answered in time")
        case 99, 198: ProtectionError(.cancelled, "cancelled")
        // ENOTTY: neither a display nor a terminal that it could use.
        case 0x8000 | 102: ProtectionError(.noPasscodeSource, "the pinentry program has nowhere to ask")
        default: ProtectionError(.cancelled, "the pinentry program refused with error \(number)")
        }
    }

    // MARK: Texts

    private static func options(isOnTerminal: Bool) -> [String] {
        var options: [String] = []
        if isOnTerminal {
            options.append("ttyname=\(Terminal.path)")
            if let type = environment("TERM") { options.append("ttytype=\(type)") }
        }
        if let locale = environment("LC_ALL") ?? environment("LC_CTYPE") ?? environment("LANG") {
            options.append("lc-ctype=\(locale)")
        }
        return options
    }

    /// A variable that is there, not empty, and printable as one word.
    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        let bytes = FilePath(copying: value).bytes
        guard !bytes.isEmpty, bytes.count < 256, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func encode(_ text: String) -> String {
        var encoded = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "%": encoded += "%25"
            case "\n": encoded += "%0A"
            case "\r": encoded += "%0D"
            default: encoded.unicodeScalars.append(scalar)
            }
        }
        return encoded
    }
}

extension String {
    /// Without the space that keeps a prompt on a terminal from what is typed.
    fileprivate var trimmed: String { hasSuffix(" ") ? String(dropLast()) : self }
}
