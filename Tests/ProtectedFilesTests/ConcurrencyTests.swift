import Glibc
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFiles

/// The locking rule between processes and handles: `docs/formats/container.md`, section "Several processes".
@Suite struct ConcurrencyTests {
    struct Broken: Error, CustomStringConvertible { let description: String }

    /// The number that fills a chunk. Throws when it is not one number: two versions in one read.
    private func stamp(_ chunk: ArraySlice<UInt8>) throws -> UInt64 {
        let first = chunk.withUnsafeBytes { bytes -> UInt64? in
            guard bytes.count >= 8, let start = bytes.baseAddress else { return nil }
            // Every eight bytes are like the eight before.
            return memcmp(start, start + 8, bytes.count - 8) == 0 ? bytes.loadUnaligned(as: UInt64.self) : nil
        }
        guard let first else { throw Broken(description: "one chunk of several versions") }
        return first
    }

    /// Issue 2 item 4: no false 'damaged', one version in each chunk, and never an older one than was seen before.
    @Test func aReaderAgainstAWriterInAnotherProcess() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let chunks = 40
        try fixture.files.write([UInt8](repeating: 0, count: chunks * 4096), to: path, class: .complete)
        let worker = try Worker(fixture, "stamp", path, "\(chunks)", "1000000000")
        try worker.awaitAnswer()
        var random = DeterministicRandom(seed: 1)
        var seen = [UInt64](repeating: 0, count: chunks)
        var reader = try fixture.files.open(path, for: .reading)
        let reads = Effort.share(50_000, long: 1_000_000)
        for read in 1...reads {
            let first = Int.random(in: 0..<chunks, using: &random)
            let count = read % 64 == 0 ? chunks - first : 1
            let bytes = try reader.read(count * 4096, at: first * 4096)
            guard bytes.count == count * 4096 else { throw Broken(description: "short by \(bytes.count)") }
            for index in 0..<count {
                let number = try stamp(bytes[(index * 4096)..<((index + 1) * 4096)])
                guard number >= seen[first + index] else {
                    throw Broken(
                        description:
                            "read \(read): chunk \(first + index) went from \(seen[first + index]) to \(number)")
                }
                seen[first + index] = number
            }
            if read % 1000 == 0 { reader = try fixture.files.open(path, for: .reading) }
        }
        #expect(worker.isRunning)
        worker.kill()
        #expect(seen.contains { $0 > 100 }, "the writer hardly wrote")
        print("concurrency: \(reads) reads against a writer that wrote \(seen.max() ?? 0) times")
    }

    @Test func anAcknowledgedAppendIsSeenAtOnce() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write([], to: path, class: .complete)
        let worker = try Worker(fixture, "append", path, "100")
        let reader = try fixture.files.open(path, for: .reading)
        for number in 1...Effort.share(500, long: 20_000) {
            worker.ask()
            try worker.awaitAnswer()
            try #require(try reader.length == UInt64(number * 800))
            try #require(try stamp(reader.read(800, at: (number - 1) * 800)[...]) == UInt64(number))
            if number % 50 == 0 {
                let fresh = try fixture.files.open(path, for: .reading)
                try #require(try fresh.read(1000, at: (number - 1) * 800).count == 800)
            }
        }
        #expect(try worker.finish() == 0)
    }

    /// Three writers, two of them other processes, each with its own bytes of one chunk.
    @Test func writersInOneChunkLoseNoByte() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        let before = pattern(6000)
        try fixture.files.write(before, to: path, class: .complete)
        let rounds = Effort.share(1000, long: 20_000)
        let workers = try [100, 1000].map { try Worker(fixture, "range", path, "\($0)", "\(rounds)") }
        for worker in workers { try worker.awaitAnswer() }
        let own = try fixture.files.open(path, for: .updating)
        let reader = try fixture.files.open(path, for: .reading)
        for round in 1...rounds {
            try own.write([UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 100), at: 4000)
            for offset in [100, 1000, 4000] {
                let bytes = try reader.read(100, at: offset)
                // The last range lies across two chunks, which may be of two versions.
                let isOne = Set(bytes).count == 1 || bytes == Array(before[offset..<(offset + 100)])
                guard isOne || offset == 4000 else { throw Broken(description: "a torn range at \(offset)") }
            }
        }
        for worker in workers { #expect(try worker.finish() == 0) }
        try own.close()
        var expected = before
        for offset in [100, 1000, 4000] {
            expected.replaceSubrange(
                offset..<(offset + 100), with: [UInt8](repeating: UInt8(truncatingIfNeeded: rounds), count: 100))
        }
        #expect(try fixture.files.contents(of: path) == expected)
        try CrashScript.checkTidy(path, length: 6000)
    }

    /// A writer that is killed at any moment: what it was acknowledged is there, what it was at is there or not, and
    /// nobody ever reads damage.
    @Test(arguments: [false, true])
    func killedWritersLoseNothing(anotherWriterLives: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        var content = pattern(50_000)
        try fixture.files.write(content, to: path, class: .complete)
        let survivor = anotherWriterLives ? try fixture.files.open(path, for: .updating) : nil
        let reader = try fixture.files.open(path, for: .reading)
        var random = DeterministicRandom(seed: 5)
        let rounds = Effort.share(200, long: 2000) / 2
        for round in 0..<rounds {
            let worker = try Worker(fixture, "script", path, "\(round)")
            try worker.awaitAnswer()
            var states = [content]
            var script = DeterministicRandom(seed: UInt64(round))
            func step() {
                let change = FileChange.next(&script, length: states[states.count - 1].count)
                var next = states[states.count - 1]
                change.apply(to: &next)
                states.append(next)
            }
            let waited = Int.random(in: 0..<4, using: &random)
            for _ in 0..<waited {
                worker.ask()
                try worker.awaitAnswer()
                step()
                if try reader.allContent() != states.last {
                    throw Broken(description: "an acknowledged step is not seen")
                }
            }
            // More steps than it can do before the signal comes, on some machines.
            let burst = 1 + round % 5
            worker.ask(burst)
            for _ in 0..<(round % 3) { _ = try reader.allContentWhileItChanges() }
            worker.kill()
            let acknowledged = waited + worker.remainingAnswers()
            for _ in waited..<(waited + burst) { step() }
            let found = try reader.allContent()
            guard let state = states.indices.first(where: { $0 >= acknowledged && states[$0] == found }) else {
                throw Broken(description: "round \(round): no state from \(acknowledged) on, of \(found.count) bytes")
            }
            content = states[state]
            if round % 4 == 0 {
                let bytes = pattern(3000, seed: UInt64(round))
                let writer = try survivor ?? fixture.files.open(path, for: .updating)
                try writer.write(bytes, at: content.count / 2)
                let overlap = min(bytes.count, content.count - content.count / 2)
                content.replaceSubrange((content.count / 2)..<(content.count / 2 + overlap), with: bytes[..<overlap])
                content += bytes[overlap...]
                if survivor == nil { try writer.close() }
                try #require(try reader.allContent() == content)
            }
        }
        try survivor?.close()
        try fixture.files.open(path, for: .updating).close()
        #expect(try fixture.files.contents(of: path) == content)
        try CrashScript.checkTidy(path, length: content.count)
    }

    /// A header that is read while it is written, with the other slot read before it was: neither may count.
    @Test func aTornHeaderIsNoOldHeader() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(4096), to: path, class: .complete)
        let writer = try fixture.files.open(path, for: .updating)
        @Sendable func append() throws { try pattern(4096).withUnsafeBytes { _ = try writer.append($0) } }
        try append()
        try append()
        let isArmed = Mutex(false)
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                guard call.operation == .readAt, isArmed.withLock({ $0 }) else { return .proceed }
                if call.offset == 0, call.count == 1024 { return .shorten(to: 768) }
                if call.offset == 768 {
                    // Both slots change between the two halves of the read.
                    isArmed.withLock { $0 = false }
                    if code({
                        try append(); try append()
                    }) != nil {
                        throw call.failure(ErrorNumber.inputOutput)
                    }
                }
                return .proceed
            })
        let reader = try ProtectedFileSystem(keys: fixture.keybag, system: system).open(path, for: .reading)
        let before = try reader.length
        #expect(before == 3 * 4096)
        isArmed.withLock { $0 = true }
        #expect(try reader.length >= before)
        #expect(!isArmed.withLock { $0 })
        #expect(try reader.length == 5 * 4096)
        try writer.close()
    }

    /// Two writers open a file at once after a crash that lost a part of its tail: what the second one appends and
    /// synchronises must not be clipped by the first one, which is still settling things.
    @Test(arguments: [true, false])
    func twoWritersMeetAfterACrash(beforeTheLock: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(8192), to: path, class: .complete)
        do {
            let killed = try fixture.files.open(path, for: .updating)
            try pattern(12_288, seed: 2).withUnsafeBytes { _ = try killed.append($0) }
        }
        // A program that another test starts at this moment has a copy of its descriptor until it runs.
        let looking = try LinuxSystemCalls.shared.openFile(path, [.read])
        while try ContainerLock.somebodyWrites(looking.number, LinuxSystemCalls.shared) { sched_yield() }
        do {
            // The power cut took one of the three new chunks.
            let file = try LinuxSystemCalls.shared.openFile(path, [.write])
            try [UInt8](repeating: 0, count: 4096).withUnsafeBytes {
                try LinuxSystemCalls.shared.writeFully(file.number, $0, at: ContainerGeometry.chunkOffset(3))
            }
        }
        let second = Mutex<ProtectedFile?>(nil)
        let failure = Mutex<String?>(nil)
        let files = fixture.files
        @Sendable func openAndAppend() {
            do {
                guard second.withLock({ $0 == nil }) else { return }
                let handle = try files.open(path, for: .updating)
                try pattern(100, seed: 3).withUnsafeBytes { _ = try handle.append($0) }
                try handle.synchronize()
                second.withLock { $0 = handle }
            } catch { failure.withLock { $0 = "\(error)" } }
        }
        // Before and after the first one has made itself known, as far as it holds no lock that the second waits for.
        let system = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                if beforeTheLock, call.operation == .lock, call.lock == .exclusive { openAndAppend() }
                return .proceed
            },
            observe: { call, _ in
                if !beforeTheLock, call.operation == .lock, call.lock == RangeLock.none { openAndAppend() }
            })
        let first = try ProtectedFileSystem(keys: fixture.keybag, system: system).open(path, for: .updating)
        let whole = pattern(8192) + pattern(12_288, seed: 2)[..<4096]
        #expect(failure.withLock { $0 } == nil)
        #expect(try first.allContent() == whole + pattern(100, seed: 3))
        try first.close()
        try second.withLock { $0 }?.close()
        #expect(try fixture.files.contents(of: path) == whole + pattern(100, seed: 3))
    }

    // MARK: - Classes

    @Test func aClassRaisedByAnotherProcessBindsOpenHandles() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(9000), to: path, class: .completeUntilFirstUserAuthentication)
        let reader = try fixture.files.open(path, for: .reading)
        let writer = try fixture.files.open(path, for: .updating)
        try writer.write([1], at: 0)
        #expect(try Worker(fixture, "set-class", path, "complete").finish() == 0)
        #expect(try reader.protectionClass == .complete)
        #expect(try reader.read(1, at: 0) == [1])
        try writer.write([2], at: 0)
        try fixture.lock()
        #expect(code { try reader.read(1, at: 0) } == .locked(.complete))
        #expect(code { try reader.length } == .locked(.complete))
        #expect(code { try writer.write([3], at: 0) } == .locked(.complete))
        #expect(code { try writer.truncate(to: 0) } == .locked(.complete))
        #expect(code { try fixture.files.open(path, for: .reading) } == .locked(.complete))
        // Sealed bytes are made durable without the key.
        try writer.close()
        try fixture.unlock()
        #expect(try fixture.files.contents(of: path) == [2] + pattern(9000)[1...])
    }

    /// The handle has not looked at the file since the class was raised: the first look after the lock must find it.
    @Test func aClassRaisedUnnoticedBindsOpenHandles() throws {
        for wanted in [ProtectionClass.complete, .completeUnlessOpen] {
            let fixture = try FilesFixture()
            let path = fixture.path("file")
            try fixture.files.write(pattern(9000), to: path, class: .completeUntilFirstUserAuthentication)
            let handle = try fixture.files.open(path, for: .updating)
            _ = try fixture.files.setProtectionClass(of: path, to: wanted)
            try fixture.lock()
            // Class B is checked at open only: this handle is open.
            let expected: ProtectionError.Code? = wanted == .complete ? .locked(wanted) : nil
            #expect(code { try handle.read(1, at: 0) } == expected)
            #expect(code { try handle.write([1], at: 0) } == expected)
            #expect(code { try handle.synchronize() } == nil)
        }
    }

    /// Whether or not the handle has looked at the file since then.
    @Test(arguments: [true, false])
    func aClassLoweredByAnotherProcessFreesOpenHandles(looked: Bool) throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write(pattern(9000), to: path, class: .complete)
        let handle = try fixture.files.open(path, for: .updating)
        #expect(try Worker(fixture, "set-class", path, "none").finish() == 0)
        if looked { #expect(try handle.length == 9000) }
        try fixture.lock()
        #expect(try handle.read(9000, at: 0) == pattern(9000))
        try handle.write([1], at: 0)
        try handle.close()
        #expect(try fixture.files.contents(of: path) == [1] + pattern(9000)[1...])
    }

    /// Classes change all the time while others read and write: nothing is lost, nothing is called damaged.
    @Test func classesChangeUnderReadersAndWriters() throws {
        let fixture = try FilesFixture()
        let path = fixture.path("file")
        try fixture.files.write([UInt8](repeating: 0, count: 40_960), to: path, class: ProtectionClass.none)
        let worker = try Worker(fixture, "stamp", path, "10", "1000000000")
        try worker.awaitAnswer()
        let reader = try fixture.files.open(path, for: .reading)
        var seen: UInt64 = 0
        for round in 0..<Effort.share(150, long: 3000) {
            let wanted = ProtectionClass.allCases[round % 4]
            _ = try fixture.files.setProtectionClass(of: path, to: wanted)
            try #require(try reader.protectionClass == wanted)
            for chunk in 0..<10 { seen = max(seen, try stamp(reader.read(4096, at: chunk * 4096)[...])) }
        }
        #expect(worker.isRunning)
        worker.kill()
        #expect(seen > 10)
        let inspection = try FileInspection.inspect(path, comparingHeaders: true)
        #expect(inspection.place == .both)
    }
}

extension ProtectedFile {
    /// Reads to wherever the end is by then.
    func allContentWhileItChanges() throws -> Int { try read(400_000, at: 0).count }
}
