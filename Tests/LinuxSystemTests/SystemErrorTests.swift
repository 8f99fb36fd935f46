import Glibc
import LinuxSystem
import TestSupport
import Testing

@Suite struct SystemErrorTests {
    @Test(
        arguments: [
            (ENOENT, "No such file or directory", "ENOENT"), (ENOSPC, "No space left on device", "ENOSPC"),
            (ENOKEY, "Required key not available", "ENOKEY"), (EBADMSG, "Bad message", "EBADMSG"),
            (4095, "unknown error 4095", "4095"), (-1, "unknown error -1", "-1"),
        ] as [(Int32, String, String)])
    func hasASentenceAndASymbol(number: Int32, sentence: String, symbol: String) {
        #expect(SystemErrorText.sentence(number) == sentence)
        #expect(SystemErrorText.symbol(number) == symbol)
    }

    @Test func namesCallPathAndAttribute() {
        #expect(SystemError(call: "pwrite", errorNumber: EIO).description == "pwrite: Input/output error")
        #expect(
            SystemError(call: "openat", errorNumber: ENOENT, path: "a\nb").description
                == "openat 'a\\nb': No such file or directory")
        #expect(
            SystemError(call: "fsetxattr", errorNumber: EOPNOTSUPP, path: "f", attribute: "user.x\u{1B}").description
                == "fsetxattr 'f' attribute 'user.x\\u{1b}': Operation not supported")
    }
}

@Suite struct ClockTests {
    @Test func realClockTellsTheTime() {
        let clock = RealClock()
        let before = clock.secondsSinceBoot
        #expect(before > 0)
        #expect(clock.secondsSinceBoot >= before)
        #expect(abs(clock.secondsSinceEpoch - Int64(time(nil))) <= 1)
    }

    @Test func testClockMovesOnlyWhenTold() {
        let clock = TestClock(secondsSinceBoot: 5, secondsSinceEpoch: 100)
        #expect(clock.secondsSinceBoot == 5)
        clock.advance(by: 10)
        #expect(clock.secondsSinceBoot == 15)
        #expect(clock.secondsSinceEpoch == 110)
        clock.setDate(secondsSinceEpoch: 3)
        #expect(clock.secondsSinceBoot == 15)
        #expect(clock.secondsSinceEpoch == 3)
        clock.reboot()
        #expect(clock.secondsSinceBoot == 0)
    }
}
