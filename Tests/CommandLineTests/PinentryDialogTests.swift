import Glibc
import LinuxSystem
import SecretMemory
import TestSupport
import Testing

@testable import candado

/// A clock on which a quarter of an hour passes at every look, once a file of this name is there.
private struct HastyClock: SystemClock {
    let clock = TestClock()
    let file: FilePath

    var secondsSinceBoot: Double {
        if (try? LinuxSystemCalls.shared.status(of: file, in: currentDirectory, followLinks: true)) != nil {
            clock.advance(by: 900)
        }
        return clock.secondsSinceBoot
    }
    var secondsSinceEpoch: Int64 { clock.secondsSinceEpoch }
}

@Suite("Pinentry dialog")
struct PinentryDialogTests {
    static let question = SecretQuestion(prompt: "Passcode: ", explanation: "100% sure?\nSay it.")

    /// Writes a program of the shell and asks by it. Time passes once the program makes `$0.late`.
    private static func ask(_ script: String) throws -> [UInt8] {
        // As the command line does: who hangs up is an error, not the end.
        signal(SIGPIPE, SIG_IGN)
        let directory = try TemporaryDirectory()
        try directory.write(Array("#!/bin/sh\n\(script)\n".utf8), to: "ask", permissions: 0o700)
        let program = directory.path.appending("ask")
        let clock = HastyClock(file: directory.path.appending("ask.late"))
        let answer = try PinentryDialog.ask(program, question, LinuxSystemCalls.shared, clock)
        guard let secret = answer.takeSecret() else { return [] }
        return secret.withUnsafeBytes { bytes in bytes.map { $0 } }
    }

    static let late = ": > \"$0.late\""
    static let obey = "echo OK; while read -r word rest; do if [ $word = GETPIN ]; then"

    @Test(
        "A program that is silent when no person is asked is given up",
        arguments: [
            "\(late); exec cat > /dev/null", "echo OK; read -r line; \(late); exec cat > /dev/null",
            "\(obey) \(late); echo 'D half'; exec cat > /dev/null; fi; echo OK; done",
        ])
    func silence(script: String) {
        #expect(throws: CommandFailure(.failed, "the pinentry program does not answer")) { try Self.ask(script) }
    }

    @Test("A person may take any time to answer")
    func patience() throws {
        let answer = try Self.ask("\(Self.obey) \(Self.late); printf 'D whole\\nOK\\n'; else echo OK; fi; done")
        #expect(answer == Array("whole".utf8))
    }

    @Test("Texts are sent without the bytes that end a line, and the explanation before the prompt")
    func texts() throws {
        let script =
            "echo OK; while IFS= read -r line; do case $line in GETPIN) printf 'D %s\\n' \"$said\" | sed 's/%/%25/g';; "
            + "SETDESC*) said=$line;; SETPROMPT*) said=\"$said+$line\";; esac; echo OK; done"
        #expect(
            String(decoding: try Self.ask(script), as: UTF8.self)
                == "SETDESC 100%25 sure?%0ASay it.+SETPROMPT Passcode:")
    }
}
