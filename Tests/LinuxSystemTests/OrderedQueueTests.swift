import Synchronization
import Testing

@testable import LinuxSystem

@Suite struct OrderedQueueTests {
    @Test(arguments: [1, 2, 8] as [UInt64], [0, 1, 16] as [UInt64])
    func everyPieceIsRunOnceAndInOrder(threads: UInt64, limit: UInt64) {
        let count: UInt64 = 5_000
        let queue = OrderedQueue(limit: limit)
        let next = Atomic<UInt64>(0)
        let order = Mutex<[UInt64]>([])
        WorkerThreads.run(Int(threads)) { _ in
            while true {
                let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard number < count else { return }
                #expect(
                    queue.submit(number) {
                        order.withLock { $0.append(number) }
                        return true
                    })
            }
        }
        #expect(order.withLock { $0 } == Array(0..<count))
    }

    @Test func whoComesEarlyDoesNotWait() {
        let queue = OrderedQueue(limit: 2)
        let order = Mutex<[Int]>([])
        for number in [2, 1, 0] {
            #expect(
                queue.submit(UInt64(number)) {
                    order.withLock { $0.append(number) }
                    return true
                })
        }
        #expect(order.withLock { $0 } == [0, 1, 2])
    }

    @Test func aPieceThatSaysFalseIsTheLast() {
        let queue = OrderedQueue(limit: 4)
        let order = Mutex<[Int]>([])
        let submit = { (number: Int, answer: Bool) in
            queue.submit(UInt64(number)) {
                order.withLock { $0.append(number) }
                return answer
            }
        }
        #expect(submit(2, true))
        #expect(submit(1, false))
        #expect(!submit(0, true))
        #expect(!submit(3, true))
        #expect(order.withLock { $0 } == [0, 1])
    }

    @Test func shuttingLetsGoWhoeverWaits() {
        let queue = OrderedQueue(limit: 0)
        let answers = Mutex<[Bool]>([])
        let waits = Atomic<Int>(0)
        WorkerThreads.run(3) { index in
            if index == 0 {
                // The others wait for number 0, or find the queue shut.
                while waits.load(ordering: .acquiring) < 2 {}
                queue.shut()
            } else {
                waits.wrappingAdd(1, ordering: .releasing)
                let answer = queue.submit(UInt64(index)) { true }
                answers.withLock { $0.append(answer) }
            }
        }
        #expect(answers.withLock { $0 } == [false, false])
    }
}
