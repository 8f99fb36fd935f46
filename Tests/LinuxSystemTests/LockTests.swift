import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct LockTests {
    /// Two open files of one process stand for two processes: the lock belongs to the open file.
    @Test(arguments: SystemUnderTest.allCases)
    func excludesOtherOpenFilesOnTheSameBytes(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let table: [(held: RangeLock, wanted: RangeLock, start: Int64, isFree: Bool)] = [
            (.shared, .shared, 100, true), (.shared, .exclusive, 100, false), (.exclusive, .shared, 100, false),
            (.exclusive, .exclusive, 100, false), (.exclusive, .exclusive, 110, true),
            (.exclusive, .exclusive, 109, false),
            (.exclusive, .exclusive, 90, false), (.none, .exclusive, 100, true),
            (.exclusive, .exclusive, 1 << 62, true),
        ]
        for row in table {
            let first = try calls.openFile("file", in: directory.descriptor, [.read, .write])
            let second = try calls.openFile("file", in: directory.descriptor, [.read, .write])
            #expect(try calls.lock(first.number, row.held, start: 100, count: 10, wait: false))
            // Asking takes nothing.
            let isHeld = row.held != .none
            #expect(try calls.isLocked(second.number, start: 105, count: 1) == isHeld)
            #expect(try calls.isLocked(second.number, start: 105, count: 1) == isHeld)
            #expect(try !calls.isLocked(second.number, start: 300, count: 1))
            // One's own does not count.
            #expect(try !calls.isLocked(first.number, start: 105, count: 1))
            #expect(
                try calls.lock(second.number, row.wanted, start: row.start, count: 11, wait: false) == row.isFree,
                "\(row)")
            // Let go of, it is free at once.
            #expect(try calls.lock(first.number, .none, start: 0, count: 0, wait: false))
            #expect(try calls.lock(second.number, row.wanted, start: row.start, count: 11, wait: true))
        }
    }

    @Test func locksFarBeyondTheEndAndGoesWithTheOpenFile() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let second = try calls.openFile("file", in: directory.descriptor, [.read, .write])
        do {
            let first = try calls.openFile("file", in: directory.descriptor, [.read, .write])
            let copy = Descriptor(try calls.duplicate(first.number), calls)
            #expect(try calls.lock(first.number, .exclusive, start: 1 << 62, count: 1, wait: false))
            // A duplicate is the same open file: no conflict.
            #expect(try calls.lock(copy.number, .exclusive, start: 1 << 62, count: 1, wait: false))
            #expect(try !calls.lock(second.number, .exclusive, start: 1 << 62, count: 1, wait: false))
        }
        #expect(try calls.lock(second.number, .exclusive, start: 1 << 62, count: 1, wait: false))
    }

    @Test func anotherProcessIsExcludedToo() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try calls.openFile("file", in: directory.descriptor, [.read, .write])
        let probe = """
            import fcntl, os, struct, sys
            f = os.open(sys.argv[1], os.O_RDWR)
            try:
                fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 1 << 62, 1, 0))
                print('free')
            except OSError:
                print('taken')
            """
        func otherProcess() throws -> String {
            try Command.run("python3", ["-c", probe, directory.appending("file").description]).outputText
        }
        #expect(try otherProcess() == "free\n")
        #expect(try calls.lock(file.number, .exclusive, start: 1 << 62, count: 1, wait: false))
        #expect(try otherProcess() == "taken\n")
    }

    @Test func lockingNeedsTheRightToWrite() throws {
        let directory = try TemporaryDirectory()
        try directory.write([], to: "file")
        let file = try LinuxSystemCalls.shared.openFile("file", in: directory.descriptor, [.read])
        #expect(try LinuxSystemCalls.shared.lock(file.number, .shared, start: 0, count: 1, wait: false))
        #expect(
            errorNumber {
                _ = try LinuxSystemCalls.shared.lock(file.number, .exclusive, start: 0, count: 1, wait: false)
            }
                == EBADF)
    }
}

@Suite struct LeaseTests {
    /// The default action of the usual signal would end this process: that the test goes on is half of it.
    @Test(arguments: SystemUnderTest.allCases)
    func aWriterBreaksTheLeaseAndKillsNobody(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        let reader = try calls.openFile("file", in: directory.descriptor, [.read])
        try calls.takeReadLease(reader.number)
        #expect(try calls.leaseState(reader.number) == .held)
        do {
            // Other readers do not disturb it.
            let other = try calls.openFile("file", in: directory.descriptor, [.read])
            #expect(try calls.bytes(other.number, count: 1) == [1])
            #expect(try calls.leaseState(reader.number) == .held)
        }
        #expect(
            errorNumber { _ = try calls.openFile("file", in: directory.descriptor, [.write, .nonBlocking]) }
                == EWOULDBLOCK)
        #expect(try calls.leaseState(reader.number) == .broken)
        try calls.dropLease(reader.number)
        // The writer gets in now.
        let writer = try calls.openFile("file", in: directory.descriptor, [.write, .nonBlocking])
        #expect(errorNumber { try calls.takeReadLease(reader.number) } == EAGAIN)
        _ = writer.number
    }

    @Test func aWriterInAnotherProcessWaitsUntilTheLeaseIsDropped() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        let reader = try calls.openFile("file", in: directory.descriptor, [.read])
        try calls.takeReadLease(reader.number)
        let probe = """
            import os, sys
            try:
                os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
                print('in')
            except BlockingIOError:
                print('waits')
            """
        func otherProcess() throws -> String {
            try Command.run("python3", ["-c", probe, directory.appending("file").description]).outputText
        }
        #expect(try otherProcess() == "waits\n")
        #expect(try calls.leaseState(reader.number) == .broken)
        try calls.dropLease(reader.number)
        #expect(try otherProcess() == "in\n")
    }

    @Test func leasesAreForReadersOfRegularFiles() throws {
        let calls = LinuxSystemCalls.shared
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        let both = try calls.openFile("file", in: directory.descriptor, [.read, .write])
        #expect(errorNumber { try calls.takeReadLease(both.number) } == EAGAIN)
        #expect(errorNumber { try calls.takeReadLease(directory.descriptor) } == EINVAL)
        #expect(try calls.leaseState(both.number) == .broken)
    }
}
