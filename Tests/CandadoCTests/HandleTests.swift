import CCandado
import FileProtection
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import CandadoC

/// Numbers that were handles, are others', or never were one.
extension CLibraryTests {
    @Suite(.serialized) struct HandleTests {
        /// Every function that takes a handle of a file.
        private func answers(to file: candado_file) -> [Int32?] {
            var byte: UInt8 = 0
            return [
                failure { candado_pread(file, &byte, 1, 0) }, failure { candado_pwrite(file, &byte, 1, 0) },
                failure { candado_append(file, &byte, 1) }, failure { candado_length(file) },
                failure { candado_truncate(file, 0) }, failure { candado_fsync(file) },
                failure { candado_class_of_file(file) }, failure { candado_close(file) },
            ]
        }

        private func eventAnswers(to events: candado_events) -> [Int32?] {
            var event = candado_event()
            return [
                failure { candado_events_descriptor(events) }, failure { candado_events_next(events, &event) },
                failure { candado_events_close(events) },
            ]
        }

        private let badFiles = [Int32?](repeating: EBADF, count: 8)
        private let badEvents = [Int32?](repeating: EBADF, count: 3)

        @Test func noNumberButAnOpenHandleIsOne() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let file = candado_open(fixture.path("a"), CANDADO_UPDATE.number, 0)
            let events = candado_events_open()
            #expect(file > 0 && events > 0)
            for number in [
                0, 1, -1, 3, file + 1, file - 1, file ^ (1 << 22), file ^ (1 << 23), file | .min, .max, .min,
            ] {
                #expect(answers(to: number) == badFiles, "\(number)")
                #expect(eventAnswers(to: number) == badEvents, "\(number)")
            }
            // Neither is taken for the other.
            #expect(answers(to: events) == badFiles)
            var random = DeterministicRandom(seed: 7)
            for _ in 0..<2000 {
                let number = Int64(bitPattern: random.next())
                #expect(answers(to: number) == badFiles)
            }
            #expect(candado_length(file) == 5)
            #expect(candado_close(file) == 0)
            #expect(answers(to: file) == badFiles)
            #expect(candado_events_close(events) == 0)
            #expect(failure { candado_events_close(events) } == EBADF)
        }

        @Test func everyBitOfAHandleCounts() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let file = candado_open(fixture.path("a"), CANDADO_UPDATE.number, 0)
            let events = candado_events_open()
            for bit in 0..<64 {
                #expect(answers(to: file ^ (1 << bit)) == badFiles, "bit \(bit)")
                #expect(eventAnswers(to: events ^ (1 << bit)) == badEvents, "bit \(bit)")
            }
            #expect(candado_length(file) == 5)
            #expect(candado_close(file) == 0)
            #expect(candado_events_close(events) == 0)
        }

        @Test func aHandleNeverComesBack() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            var seen: Set<candado_file> = []
            for _ in 0..<200 {
                let file = candado_open(fixture.path("a"), CANDADO_READ.number, 0)
                #expect(seen.insert(file).inserted)
                #expect(candado_close(file) == 0)
            }
            for file in seen { #expect(failure { candado_length(file) } == EBADF) }
        }

        @Test func aHandleForReadingWritesNothing() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let file = candado_open(fixture.path("a"), CANDADO_READ.number, 0)
            #expect(failure { candado_pwrite(file, "x", 1, 0) } == EBADF)
            #expect(failure { candado_append(file, "x", 1) } == EBADF)
            #expect(failure { candado_truncate(file, 0) } == EBADF)
            #expect(candado_fsync(file) == 0 && candado_length(file) == 5)
            #expect(candado_close(file) == 0)
        }

        @Test func manyHandlesAreOpenAtOnceAndEachIsItsOwnFile() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            var handles: [candado_file] = []
            for index in 0..<150 {
                let file = candado_open(fixture.path("\(index)"), CANDADO_CREATE.number, 4)
                #expect(file > 0)
                #expect(candado_pwrite(file, [UInt8(index)], 1, 0) == 1)
                handles.append(file)
            }
            for (index, file) in handles.enumerated() {
                var byte: UInt8 = 0
                #expect(candado_pread(file, &byte, 1, 0) == 1)
                #expect(byte == UInt8(index))
                #expect(candado_close(file) == 0)
            }
        }

        @Test func eightThreadsShareHandlesAndOneOfThemCloses() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            let content = [UInt8](repeating: 0x5A, count: 10_000)
            try fixture.makeFile("shared", .none, content)
            let path = fixture.path("shared")
            let shared = candado_open(path, CANDADO_UPDATE.number, 0)
            let closed = Atomic(0)
            let problems = Mutex<[String]>([])
            WorkerThreads.run(8) { thread in
                var buffer = [UInt8](repeating: 0, count: 4096)
                for round in 0..<200 {
                    let own = candado_open(path, CANDADO_READ.number, 0)
                    if own < 0 { problems.withLock { $0.append("open: \(lastError())") } }
                    for file in [own, shared] {
                        let count = candado_pread(file, &buffer, 4096, 4096)
                        let number = errno
                        let fine = count == 4096 && buffer == [UInt8](repeating: 0x5A, count: 4096)
                        // The shared one ends in the middle of it all, for everyone.
                        if !fine, file == own || count != -1 || number != EBADF {
                            problems.withLock { $0.append("read: \(count) \(number) \(lastError())") }
                        }
                    }
                    if candado_close(own) != 0 { problems.withLock { $0.append("close: \(lastError())") } }
                    if round == 100, candado_close(shared) == 0 { closed.add(1, ordering: .relaxed) }
                    // Failures of one thread are not another's.
                    if thread % 2 == 1 {
                        _ = candado_class_of_path("/nowhere/\(thread)", 0)
                        if !lastError().contains("/nowhere/\(thread)") {
                            problems.withLock { $0.append("error of another thread: \(lastError())") }
                        }
                    }
                }
            }
            #expect(problems.withLock { $0 }.isEmpty)
            #expect(closed.load(ordering: .relaxed) == 1)
        }

        @Test func eightThreadsAppendAndNothingIsLost() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            let path = fixture.path("log")
            let file = candado_open(path, CANDADO_CREATE.number, 3)
            WorkerThreads.run(8) { thread in
                for _ in 0..<50 { _ = candado_append(file, [UInt8](repeating: UInt8(thread), count: 100), 100) }
            }
            #expect(candado_length(file) == 8 * 50 * 100)
            #expect(candado_close(file) == 0)
            var content = [UInt8](repeating: 0xFF, count: 40_000)
            #expect(candado_read_file_into(path, &content, content.count) == 40_000)
            for start in stride(from: 0, to: 40_000, by: 100) {
                #expect(Set(content[start..<(start + 100)]).count == 1)
            }
            for thread in 0..<8 { #expect(content.count { $0 == UInt8(thread) } == 5000) }
        }
    }
}
