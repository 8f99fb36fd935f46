import LinuxSystem
import ProtectionModel
import SecretMemory

/// Where a passcode comes from.
enum PasscodeSource: Sendable, Hashable {
    /// Asked on the terminal, without echo.
    case terminal
    /// The content of a file; `-` is stdin.
    case file(FilePath)
    /// What comes through an open descriptor.
    case descriptor(Int32)

    /// The source that a command line names: the terminal when it names none.
    init(
        _ invocation: Invocation, file: OptionName = .passcodeFile, descriptor: OptionName = .passcodeDescriptor
    ) throws(UsageError) {
        if let argument = invocation.value(file) {
            self = argument.isDash ? .descriptor(0) : .file(argument.path)
        } else if let number = invocation.number(descriptor) {
            guard let narrow = Int32(exactly: number) else {
                throw UsageError("'--\(descriptor.rawValue)' needs the number of an open descriptor")
            }
            self = .descriptor(narrow)
        } else {
            self = .terminal
        }
    }
}

/// Asks for passcodes and recovery keys. The bytes go from the kernel into secret memory and nowhere else.
struct PasscodePrompt: Sendable {
    /// How often a person may try.
    static let triesOnTerminal = 3
    /// The most bytes that a file or descriptor may give.
    static let maximumCount = 4096

    private let system: any SystemCalls
    private let console: Console

    /// Joins the two.
    init(system: any SystemCalls, console: Console) {
        self.system = system
        self.console = console
    }

    /// Reads a passcode and hands it to `body`. Where a person was asked, a wrong one may be tried again, three times in
    /// all; any other source gets one try.
    func withPasscode<R>(
        _ source: PasscodeSource, prompt: String, _ body: (borrowing SecretBytes) throws -> R
    ) throws -> R {
        var tries = 0
        while true {
            tries += 1
            let passcode = try read(source, prompt: prompt)
            do {
                return try body(passcode)
            } catch let error as ProtectionError {
                guard case .wrongPasscode = error.code, source == .terminal, tries < Self.triesOnTerminal else {
                    throw error
                }
                console.error(error.message)
            }
        }
    }

    /// Reads a new passcode, twice where a person is asked.
    func readNew(_ source: PasscodeSource, prompt: String) throws -> SecretBytes {
        guard source == .terminal else { return try read(source, prompt: prompt) }
        var tries = 0
        while true {
            tries += 1
            let first = try read(source, prompt: prompt)
            let second = try read(source, prompt: "The same again: ")
            if first.equals(second) { return first }
            guard tries < Self.triesOnTerminal else {
                throw CommandFailure(.failed, "the two passcodes differ", hints: ["nothing was changed"])
            }
            console.error("the two passcodes differ")
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

    /// Reads once. Throws `noPasscodeSource` where nobody can be asked, and `invalidArgument` for an empty answer.
    func read(_ source: PasscodeSource, prompt: String) throws -> SecretBytes {
        let answer: SecretBytes?
        switch source {
        case .terminal:
            guard let terminal = Terminal(system) else {
                throw ProtectionError(.noPasscodeSource, "a passcode is needed and there is no terminal to ask on")
            }
            answer = try terminal.readSecretLine(prompt: prompt)
        case .file(let path):
            let descriptor = Descriptor(
                try system.open(path, in: currentDirectory, [.read], permissions: 0), system)
            let status = try system.status(descriptor.number)
            if status.kind == .regular, status.permissions & 0o077 != 0 {
                console.warning("others can read \(path.quoted)")
            }
            answer = try readAll(descriptor.number)
        case .descriptor(let number):
            answer = try readAll(number)
        }
        guard let answer else { throw ProtectionError(.invalidArgument, "the passcode is empty") }
        return answer
    }

    /// Everything up to the end, less one newline at the end. Nil for nothing.
    private func readAll(_ descriptor: Int32) throws -> SecretBytes? {
        var buffer = try SecretBytes(count: Self.maximumCount + 2)
        let system = self.system
        var count = 0
        while count < buffer.count {
            guard Interrupts.waitForInput(descriptor) else { throw ProtectionError(.cancelled, "interrupted") }
            let start = count
            let more = try buffer.withUnsafeMutableBytes { bytes throws(SystemError) -> Int in
                try system.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
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
