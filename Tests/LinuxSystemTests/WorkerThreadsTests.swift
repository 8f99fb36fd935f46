import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct WorkerThreadsTests {
    @Test(arguments: [0, 1, 2, 7, 32])
    func runsEveryNumberOnceAndWaitsForAll(count: Int) {
        let seen = Mutex<[Int]>([])
        WorkerThreads.run(count) { number in seen.withLock { $0.append(number) } }
        #expect(seen.withLock { $0.sorted() } == Array(0..<max(count, 1)))
    }

    @Test func theGateKeepsTheOrderWhoeverComesFirst() {
        let gate = OrderedGate()
        let passed = Mutex<[UInt64]>([])
        let next = Atomic<UInt64>(0)
        WorkerThreads.run(4) { _ in
            while true {
                let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard number < 200 else { return }
                #expect(
                    gate.pass(number) {
                        passed.withLock { $0.append(number) }
                        return true
                    })
            }
        }
        #expect(passed.withLock { $0 } == Array(0..<200))
    }

    @Test func nobodyPassesAShutGate() {
        let gate = OrderedGate()
        #expect(gate.pass(0) { true })
        #expect(!gate.pass(1) { false })
        #expect(
            !gate.pass(2) {
                Issue.record("passed")
                return true
            })
        // One who waits for a number that never comes is let go.
        let waiting = OrderedGate()
        WorkerThreads.run(2) { number in
            if number == 0 {
                waiting.shut()
            } else {
                #expect(
                    !waiting.pass(5) {
                        Issue.record("passed")
                        return true
                    })
            }
        }
    }

    @Test func interruptedCallsAreRepeatedAndOthersAreNot() {
        for (number, expectedCalls, expected) in [(EINTR, 4, 7), (EIO, 1, -Int(EIO))] as [(Int32, Int, Int)] {
            var calls = 0
            let result = repeatedWhileInterrupted { () -> Int in
                calls += 1
                errno = number
                return calls < 4 ? -1 : 7
            }
            #expect(calls == expectedCalls)
            #expect(result == expected)
        }
    }
}
