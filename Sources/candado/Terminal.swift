import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The controlling terminal, for asking what nobody else may see.
struct Terminal: ~Copyable {
    static let path: FilePath = "/dev/tty"
    /// The kernel's line editor cuts a longer line short without a word.
    private static let longestLine = 4095

    private let descriptor: Descriptor
    private let system: any SystemCalls
    private var mode: termios?

    /// Nil when this process has no terminal.
    init?(_ system: any SystemCalls) {
        guard
            let number = try? system.open(Self.path, in: currentDirectory, [.read, .write], permissions: 0)
        else { return nil }
        self.descriptor = Descriptor(number, system)
        self.system = system
    }

    /// Shows a prompt and reads a line without echo. Nil for an empty line.
    ///
    /// The terminal is as it was afterwards, also when an interrupt ends the wait: that throws `cancelled`.
    func readSecretLine(prompt: String) throws -> SecretBytes? {
        var old = termios()
        guard tcgetattr(descriptor.number, &old) == 0 else {
            throw SystemError(call: "tcgetattr", errorNumber: errno, path: Self.path)
        }
        var silent = old
        silent.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL)
        silent.c_lflag |= tcflag_t(ICANON | ISIG)
        // Suspending here would leave the terminal without echo. Zero turns a key off (_POSIX_VDISABLE).
        Self.disableSuspend(&silent)
        Interrupts.restoreOnExit(descriptor.number, old)
        // Whatever was typed before the prompt was not meant for it.
        tcsetattr(descriptor.number, TCSAFLUSH, &silent)
        defer {
            tcsetattr(descriptor.number, TCSAFLUSH, &old)
            Interrupts.forgetTerminal()
            show("\n")
        }
        show(prompt)
        return try readLine()
    }

    /// Shows a text on the terminal.
    func show(_ text: String) {
        Array(text.utf8).withUnsafeBytes { buffer in
            // A prompt that cannot be shown does no harm: the answer is still waited for.
            _ = try? system.writeFully(descriptor.number, buffer)
        }
    }

    /// Shows a secret on the terminal. Throws when it could not be shown.
    func show(_ secret: borrowing SecretBytes) throws {
        let number = descriptor.number
        let system = self.system
        try secret.withUnsafeBytes { bytes throws(SystemError) in try system.writeFully(number, bytes) }
    }

    /// Notes how the terminal is set, for another program that is about to use it, also for a second SIGINT meanwhile.
    mutating func rememberMode() {
        var now = termios()
        guard isOurs, tcgetattr(descriptor.number, &now) == 0 else { return }
        mode = now
        Interrupts.restoreOnExit(descriptor.number, now)
    }

    /// Sets the terminal as it was, where the other program left it otherwise.
    mutating func restoreMode() {
        guard var old = mode else { return }
        Interrupts.forgetTerminal()
        mode = nil
        var now = termios()
        guard isOurs, tcgetattr(descriptor.number, &now) == 0,
            (now.c_lflag, now.c_iflag, now.c_oflag) != (old.c_lflag, old.c_iflag, old.c_oflag)
        else { return }
        tcsetattr(descriptor.number, TCSADRAIN, &old)
    }

    /// False in the background, where setting the terminal would stop this process.
    private var isOurs: Bool { tcgetpgrp(descriptor.number) == getpgrp() }

    private func readLine() throws -> SecretBytes? {
        guard Interrupts.waitForInput(descriptor.number) else {
            throw ProtectionError(.cancelled, "interrupted")
        }
        var line = try SecretBytes(count: Self.longestLine + 1)
        let number = descriptor.number
        let system = self.system
        var count = try line.withUnsafeMutableBytes { buffer throws(SystemError) -> Int in
            try system.read(number, into: buffer)
        }
        guard count < Self.longestLine else {
            throw ProtectionError(.invalidArgument, "the line is too long for a terminal")
        }
        if count > 0, line.withUnsafeBytes({ $0[count - 1] }) == UInt8(ascii: "\n") { count -= 1 }
        return try line.first(count)
    }

    private static func disableSuspend(_ mode: inout termios) {
        withUnsafeMutableBytes(of: &mode.c_cc) { $0[Int(VSUSP)] = 0 }
    }
}

extension SecretBytes {
    /// A secret of the first bytes of this one, or nil for none.
    borrowing func first(_ count: Int) throws -> SecretBytes? {
        guard count > 0 else { return nil }
        return try withUnsafeBytesCopied(count)
    }

    private borrowing func withUnsafeBytesCopied(_ count: Int) throws -> SecretBytes {
        try SecretBytes(count: count) { target in
            withUnsafeBytes { source in
                target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<count]))
            }
        }
    }
}
