import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// What is left in a forked child of a process that uses the library.
@Suite struct ForkTests {
    /// Runs `body` in a child and gives its status. What hangs there ends by a signal.
    static func inChild(_ body: () -> Int32) -> Int32 {
        let child = fork()
        if child == 0 {
            alarm(30)
            _exit(body())
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) == -1, errno == EINTR {}
        return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + (status & 0x7F)
    }

    /// The number of the first function that does not refuse with ESTALE; 0 when all do.
    static func firstThatIsNotRefused(_ file: candado_file, _ events: candado_events, _ path: String) -> Int32 {
        var byte: UInt8 = 0
        var event = candado_event()
        var bytes: UnsafeMutableRawPointer?
        var size = 0
        let calls: [() -> Int64] = [
            { candado_pread(file, &byte, 1, 0).wide }, { candado_pwrite(file, &byte, 1, 0).wide },
            { candado_append(file, &byte, 1) }, { candado_length(file) }, { candado_truncate(file, 0).wide },
            { candado_fsync(file).wide }, { candado_class_of_file(file).wide }, { candado_close(file).wide },
            { candado_close(12345).wide }, { candado_open(path, CANDADO_READ.number, 0) },
            { candado_read_file(path, &bytes, &size).wide }, { candado_read_file_into(path, &byte, 1).wide },
            { candado_write_file(path, &byte, 1, 0, 0).wide }, { candado_set_class(path, 4, 0).wide },
            { candado_use_home(path).wide }, { candado_connect_agent().wide }, { candado_lock_state().wide },
            { candado_can_read(1).wide }, { candado_events_open() }, { candado_events_descriptor(events).wide },
            { candado_events_next(events, &event).wide }, { candado_events_close(events).wide },
        ]
        for (index, call) in calls.enumerated() {
            errno = 0
            guard call() == -1, errno == ESTALE, candado_error_kind() == CANDADO_ERROR_FORKED.number else {
                return Int32(index + 1)
            }
        }
        return 0
    }

    /// True when what needs no key answers as ever.
    static func answersWithoutKeys(_ path: String) -> Bool {
        var record = [UInt8](repeating: 0, count: 124)
        let count = candado_record_of_path(path, 0, &record, record.count)
        var parts = candado_record()
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        return count == 60 && candado_class_of_path(path, 0) == 4 && candado_class_of_path(path, follow) == 4
            && candado_class_of_descriptor(descriptor) == 4 && candado_record_parse(record, count, &parts) == 0
            && candado_record_encode(&parts, &record, record.count) == 60
            && candado_record_describe(&parts, nil, 0) > 0 && candado_class_named("complete") == 1
            && candado_set_record_of_descriptor(descriptor, 0, record, count) == 0
    }

    @Test func aChildIsRefusedWhatIsItsParentsAndTheParentGoesOn() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let path = fixture.path("a")
            let file = candado_open(path, CANDADO_UPDATE.number, 0)
            let events = candado_events_open()
            #expect(ForkTests.inChild { ForkTests.firstThatIsNotRefused(file, events, path) } == 0)
            #expect(ForkTests.inChild { ForkTests.answersWithoutKeys(path) ? 0 : 1 } == 0)
            // A child's child is no better off.
            let grandchild = ForkTests.inChild {
                ForkTests.inChild { ForkTests.firstThatIsNotRefused(file, events, path) }
            }
            #expect(grandchild == 0)
            var event = candado_event()
            #expect(candado_events_next(events, &event) == 1)
            #expect(candado_length(file) == 5 && candado_close(file) == 0 && candado_events_close(events) == 0)
        }
    }

    /// Whatever other threads hold at the moment of the fork, the child neither waits for it nor ends by it.
    @Test func aForkInTheMidstOfEightThreadsHangsNowhere() async {
        await #expect(processExitsWith: .success) {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let path = fixture.path("a")
            let file = candado_open(path, CANDADO_UPDATE.number, 0)
            let events = candado_events_open()
            WorkerThreads.run(8) { thread in
                if thread == 0 {
                    for _ in 0..<60 {
                        let outcome = ForkTests.inChild {
                            ForkTests.answersWithoutKeys(path)
                                ? ForkTests.firstThatIsNotRefused(file, events, path) : 100
                        }
                        #expect(outcome == 0)
                    }
                    _ = candado_close(file)
                    return
                }
                var buffer = [UInt8](repeating: 0, count: 100)
                while candado_pread(file, &buffer, 100, 0) == 5 {
                    let own = candado_open(path, CANDADO_READ.number, 0)
                    candado_close(own)
                    _ = candado_class_of_path(path, 0)
                    _ = candado_lock_state()
                }
            }
        }
    }

    @Test func aProcessThatForksBeforeItUsesTheLibraryHasItInTheChild() async {
        await #expect(processExitsWith: .success) {
            // What needs no key is no use in this sense.
            _ = candado_class_of_path("/nowhere", 0)
            _ = candado_error_text(ENOKEY)
            let outcome = ForkTests.inChild {
                guard let fixture = try? LibraryFixture(), (try? fixture.unlock()) != nil,
                    (try? fixture.makeFile("a", .complete)) != nil
                else { return 1 }
                let file = candado_open(fixture.path("a"), CANDADO_UPDATE.number, 0)
                guard candado_length(file) == 5 else { return 2 }
                // And its own children are refused.
                let inner = ForkTests.inChild { candado_length(file) == -1 && errno == ESTALE ? 0 : 1 }
                return inner == 0 && candado_close(file) == 0 ? 0 : 3
            }
            #expect(outcome == 0)
            // The parent has lost nothing by it.
            let fixture = try LibraryFixture()
            #expect(candado_lock_state() == EventQueue.number(of: .beforeFirstUnlock))
            _ = fixture
        }
    }
}

extension FixedWidthInteger {
    /// Whatever C's integer was.
    var wide: Int64 { Int64(self) }
}
