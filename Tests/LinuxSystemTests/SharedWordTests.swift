import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct SharedWordTests {
    /// Words of this process, zero at first.
    private final class Words: @unchecked Sendable {
        let address: UnsafeMutableRawPointer
        init(_ count: Int) {
            address = .allocate(byteCount: count * 8, alignment: 8)
            address.initializeMemory(as: UInt64.self, repeating: 0, count: count)
        }
        deinit { address.deallocate() }
    }

    @Test func eachOperationGivesTheValueBefore() {
        let words = Words(1)
        let word = words.address
        SharedWord.store64(word, 0x1122_3344_5566_7788)
        #expect(SharedWord.load64(word) == 0x1122_3344_5566_7788)
        SharedWord.store32(word, 5)
        #expect(SharedWord.load32(word) == 5)
        #expect(SharedWord.load32(word + 4) == 0x1122_3344)
        #expect(SharedWord.add32(word, 0xFFFF_FFFE) == 5)
        #expect(SharedWord.load32(word) == 3)
        #expect(SharedWord.subtract32(word, 4) == 3)
        #expect(SharedWord.load32(word) == 0xFFFF_FFFF)
        // The neighbour is never touched.
        #expect(SharedWord.load32(word + 4) == 0x1122_3344)
    }

    @Test func copiesAndClearsExactlySoManyWords() {
        let from = Words(6)
        let to = Words(6)
        for index in 0..<6 { SharedWord.store64(from.address + 8 * index, UInt64(index) + 100) }
        SharedWord.copyWords(from: from.address + 8, to: to.address + 16, count: 3)
        #expect((0..<6).map { SharedWord.load64(to.address + 8 * $0) } == [0, 0, 101, 102, 103, 0])
        SharedWord.clearWords(from.address + 16, count: 2)
        #expect((0..<6).map { SharedWord.load64(from.address + 8 * $0) } == [100, 101, 0, 0, 104, 105])
        SharedWord.copyWords(from: from.address, to: to.address, count: 0)
        SharedWord.clearWords(from.address, count: 0)
        #expect(SharedWord.load64(from.address) == 100 && SharedWord.load64(to.address) == 0)
    }

    @Test func additionsOfAllThreadsCount() {
        let words = Words(1)
        WorkerThreads.run(4) { _ in
            for _ in 0..<20_000 {
                SharedWord.add32(words.address, 3)
                SharedWord.subtract32(words.address, 1)
            }
        }
        #expect(SharedWord.load32(words.address) == 160_000)
    }

    /// A writer that marks its work by a counter, and a reader that looks at the counter before and after.
    @Test func aReaderThatLooksAtTheCounterSeesNoMixture() {
        let words = Words(9)
        let result = FirstError()
        WorkerThreads.run(2) { index in
            if index == 1 {
                for round in 1...20_000 as ClosedRange<UInt64> {
                    SharedWord.store64(words.address, 2 * round - 1)
                    SharedWord.fence()
                    for word in 1...8 { SharedWord.store64(words.address + 8 * word, round) }
                    SharedWord.store64(words.address, 2 * round)
                }
                return
            }
            let copy = Words(8)
            var last: UInt64 = 0
            while last < 40_000 {
                let before = SharedWord.load64(words.address)
                SharedWord.copyWords(from: words.address + 8, to: copy.address, count: 8)
                let after = SharedWord.load64(words.address)
                guard before == after, before % 2 == 0 else { continue }
                last = before
                for word in 0..<8 where SharedWord.load64(copy.address + 8 * word) != before / 2 {
                    result.note { throw Unexpected() }
                }
            }
        }
        #expect(result.isEmpty)
    }
}

@Suite struct HeldWordTests {
    private let calls = LinuxInterprocessCalls.shared

    enum Ending: CaseIterable {
        case killed, returned, aborted, trapped, becameAnotherProgram
    }

    /// Memory with a word that a child will hold, as the agent's clients see it.
    private final class HeldByChild {
        let seen: SharedMapping
        let child: ForkedChild
        let pair = try? SocketPair()

        init(offset: Int, end: @escaping () -> Void) throws {
            let calls = LinuxInterprocessCalls.shared
            let made = try calls.makeSharedMemory(size: 4096, writableByOthers: true, locked: false)
            seen = made.mapping
            let pair = try #require(pair)
            // Once here, so that the child finds everything set up.
            #expect(!SharedWord.isHeld(SharedWord.load32(seen.address + offset)))
            child = ForkedChild {
                let mapping = try calls.mapSharedMemory(made.descriptor, size: 4096, writable: true)
                close(pair.near)
                try SharedWord.holdRobustly(mapping.address + offset)
                try calls.send([1], to: pair.far)
                // Until the parent says so, or is gone.
                _ = try calls.receive(pair.far)
                end()
                return false
            }
            close(made.descriptor)
            _ = try calls.receive(pair.near)
        }

        func go() throws { try LinuxInterprocessCalls.shared.send([1], to: try #require(pair).near) }

        deinit { LinuxInterprocessCalls.shared.unmap(seen) }
    }

    @Test(arguments: Ending.allCases) func theKernelMarksTheWordHoweverTheHolderDies(ending: Ending) throws {
        let held = try HeldByChild(offset: 1024) {
            switch ending {
            case .killed: kill(getpid(), SIGKILL)
            case .returned: _exit(0)
            case .aborted:
                // Without the file of a dump.
                var none = rlimit()
                setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
                signal(SIGABRT, SIG_DFL)
                abort()
            case .trapped:
                var none = rlimit()
                setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
                signal(SIGSEGV, SIG_DFL)
                kill(getpid(), SIGSEGV)
            case .becameAnotherProgram:
                var words: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
                execv("/bin/true", &words)
            }
        }
        let word = held.seen.address + 1024
        #expect(SharedWord.load32(word) == UInt32(held.child.process))
        #expect(SharedWord.isHeld(SharedWord.load32(word)))
        if ending == .killed {
            kill(held.child.process, SIGKILL)
        } else {
            try held.go()
        }
        let expected: ChildProcess.End =
            switch ending {
            case .killed: .killed(signal: SIGKILL)
            case .aborted: .killed(signal: SIGABRT)
            case .trapped: .killed(signal: SIGSEGV)
            case .returned, .becameAnotherProgram: .returned(status: 0)
            }
        #expect(try held.child.end() == expected)
        #expect(SharedWord.load32(word) == 0x4000_0000)
        #expect(!SharedWord.isHeld(SharedWord.load32(word)))
        // No other word is touched.
        for offset in stride(from: 0, to: 4096, by: 4) where offset != 1024 {
            #expect(SharedWord.load32(held.seen.address + offset) == 0)
        }
    }

    @Test func aStoppedHolderStillHolds() throws {
        let held = try HeldByChild(offset: 0) {}
        kill(held.child.process, SIGSTOP)
        var status: Int32 = 0
        #expect(waitpid(held.child.process, &status, WUNTRACED) == held.child.process)
        #expect(SharedWord.isHeld(SharedWord.load32(held.seen.address)))
        kill(held.child.process, SIGKILL)
        #expect(try held.child.end() == .killed(signal: SIGKILL))
        #expect(!SharedWord.isHeld(SharedWord.load32(held.seen.address)))
    }

    @Test func theEndOfTheThreadCountsAsDeath() throws {
        let made = try calls.makeSharedMemory(size: 4096, writableByOthers: false, locked: false)
        let descriptor = owned(made.descriptor)
        let result = FirstError()
        WorkerThreads.run(2) { index in
            guard index == 1 else { return }
            result.note {
                try SharedWord.holdRobustly(made.mapping.address)
                if !SharedWord.isHeld(SharedWord.load32(made.mapping.address)) { throw Unexpected() }
                // One word a thread.
                let second = errorNumber { try SharedWord.holdRobustly(made.mapping.address + 8) }
                if second != EBUSY || SharedWord.load32(made.mapping.address + 8) != 0 { throw Unexpected() }
            }
        }
        #expect(result.isEmpty)
        // The kernel marks the word before it tells of the thread's end.
        #expect(SharedWord.load32(made.mapping.address) == 0x4000_0000)
        calls.unmap(made.mapping)
        _ = descriptor.number
    }

    @Test func aWordAcrossABorderIsRefused() throws {
        let made = try calls.makeSharedMemory(size: 4096, writableByOthers: false, locked: false)
        let descriptor = owned(made.descriptor)
        for offset in [1, 2, 3, 6] {
            #expect(errorNumber { try SharedWord.holdRobustly(made.mapping.address + offset) } == EINVAL)
        }
        #expect(SharedWord.load64(made.mapping.address) == 0)
        calls.unmap(made.mapping)
        _ = descriptor.number
    }

    @Test func heldIsToldByNumberAndMark() {
        let table: [(value: UInt32, isHeld: Bool)] = [
            (0, false), (1, true), (0x3FFF_FFFF, true), (0x4000_0000, false), (0x4000_0001, false),
            (0x8000_0000, false), (0x8000_0001, true), (0xC000_0001, false), (0xC000_0000, false),
        ]
        for row in table { #expect(SharedWord.isHeld(row.value) == row.isHeld, "\(row)") }
    }
}
