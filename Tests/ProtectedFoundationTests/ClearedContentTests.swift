import FileProtection
import Synchronization
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Content that only passes through this module is cleared, and nobody waits long for a yes or no.
@Suite struct ClearedContentTests {
    /// What was cleared, as it is given back: how many bytes, and whether all are zero.
    private final class Seen: Sendable {
        let counts = Mutex<[Int]>([])
        func add(_ memory: UnsafeMutableRawPointer, _ count: Int) {
            let bytes = UnsafeRawBufferPointer(start: memory, count: count)
            #expect(bytes.allSatisfy { $0 == 0 })
            counts.withLock { $0.append(count) }
        }
    }

    /// Foundation's stream has a copy of its own, which is out of reach.
    @Test func theContentThatAStreamIsGivenIsCleared() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let content = [UInt8](repeating: 7, count: 100_000)
        try fixture.protection.write(content, to: fixture.path("it"), class: .completeUnlessOpen)
        let seen = Seen()
        ContentMemory.$cleared.withValue({ seen.add($0, $1) }) {
            fixture.run {
                do {
                    let stream = InputStream(url: fixture.url("it"))
                    #expect(stream?.everything == Data(content).encoded)
                }
                #expect(seen.counts.withLock { $0 } == [content.count])
            }
        }
    }

    @Test func anAnswerThatTakesLongIsNotWaitedForAndNotAskedForTwice() {
        let asked = Mutex(0)
        let wasAsked = DispatchSemaphore(value: 0)
        let mayAnswer = DispatchSemaphore(value: 0)
        let question = BoundedQuestion<Int> {
            asked.withLock { $0 += 1 }
            wasAsked.signal()
            mayAnswer.wait()
            return 7
        }
        #expect(question.answer(within: .milliseconds(1)) == nil)
        wasAsked.wait()
        #expect(question.answer(within: .milliseconds(1)) == nil)
        #expect(asked.withLock { $0 } == 1)
        mayAnswer.signal()
    }

    @Test func anAnswerIsAskedForAnewWhenTheLastOneCame() {
        let asked = Mutex(0)
        let question = BoundedQuestion<Int> {
            asked.withLock {
                $0 += 1
                return $0
            }
        }
        #expect(question.answer(within: .seconds(60)) == 1)
        #expect(question.answer(within: .seconds(60)) == 2)
        #expect(BoundedQuestion<Int> { nil }.answer(within: .seconds(60)) == nil)
    }
}
