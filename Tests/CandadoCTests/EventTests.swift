import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// Lock events through a descriptor that can be polled.
extension CLibraryTests {
    @Suite(.serialized) struct EventTests {
        private func isReadable(_ descriptor: Int32, within milliseconds: Int32 = 0) -> Bool {
            (try? LinuxInterprocessCalls.shared.waitUntilReadable(descriptor, milliseconds: milliseconds)) == true
        }

        private func next(_ events: candado_events) -> candado_event? {
            var event = candado_event()
            return candado_events_next(events, &event) == 1 ? event : nil
        }

        @Test func theStateComesFirstAndThenEveryEventInOrder() throws {
            let fixture = try LibraryFixture()
            let events = candado_events_open()
            let descriptor = candado_events_descriptor(events)
            #expect(isReadable(descriptor))
            let first = next(events)
            #expect(first?.kind == CANDADO_EVENT_STATE.number)
            #expect(first?.state == EventQueue.number(of: .beforeFirstUnlock))
            #expect(!isReadable(descriptor))
            #expect(next(events) == nil)
            try fixture.unlock()
            try fixture.lock()
            var kinds: [Int32] = []
            while kinds.count < 3, isReadable(descriptor, within: 10_000) {
                guard let event = next(events) else { continue }
                kinds.append(event.kind)
                #expect(event.reserved == 0 && event.grace_milliseconds == 0)
                let isUnlocked = [CANDADO_EVENT_DID_UNLOCK.number, CANDADO_EVENT_WILL_LOCK.number].contains(event.kind)
                #expect(event.state == EventQueue.number(of: isUnlocked ? .unlocked : .locked))
            }
            #expect(
                kinds == [
                    CANDADO_EVENT_DID_UNLOCK.number, CANDADO_EVENT_WILL_LOCK.number, CANDADO_EVENT_DID_LOCK.number,
                ])
            #expect(candado_events_close(events) == 0)
            #expect(fcntl(descriptor, F_GETFD) == -1)
        }

        @Test func aSlowReaderLosesTheOldestAndIsTold() throws {
            let queue = try EventQueue()
            let descriptor = try #require(queue.descriptor)
            queue.add(.state(.locked))
            for _ in 0..<EventQueue.limit {
                queue.add(.lock(.didUnlock, nil))
                queue.add(.lock(.didLock, .idle))
            }
            let lost = try queue.next()
            #expect(lost?.kind == CANDADO_EVENT_LOST.number)
            #expect(lost?.state == EventQueue.number(of: .locked))
            for index in 0..<EventQueue.limit {
                #expect(isReadable(descriptor))
                let event = try queue.next()
                let isLock = index % 2 == 1
                #expect(
                    event?.kind == (isLock ? CANDADO_EVENT_DID_LOCK : CANDADO_EVENT_DID_UNLOCK).number, "\(index)")
                #expect(event?.reason == EventQueue.number(of: isLock ? .idle : nil))
            }
            #expect(try queue.next() == nil)
            #expect(!isReadable(descriptor))
            queue.add(.lock(.willLock(grace: 2.5), .screenLock))
            let event = try queue.next()
            #expect(event?.grace_milliseconds == 2500)
            #expect(event?.reason == Int32(bitPattern: CANDADO_REASON_SCREEN_LOCK.rawValue))
        }

        @Test func theEndIsToldAfterWhatCameBefore() throws {
            let queue = try EventQueue()
            let descriptor = try #require(queue.descriptor)
            queue.add(.lock(.didLock, .command))
            queue.end()
            #expect(try queue.next() != nil)
            for _ in 0..<2 {
                #expect(isReadable(descriptor))
                #expect(throws: CallFailure.self) { try queue.next() }
            }
        }

        @Test func timesThatNoClockHasAreNoTrap() throws {
            let queue = try EventQueue()
            for grace in [Double.nan, .infinity, -.infinity, -1, 1e300] {
                queue.add(.lock(.willLock(grace: grace), nil))
                #expect((try queue.next()?.grace_milliseconds ?? -1) >= 0)
            }
        }

        @Test func everyReasonHasItsNumber() {
            let numbers = LockReason.allCases.map { EventQueue.number(of: $0) }
            #expect(Set(numbers).count == LockReason.allCases.count && !numbers.contains(0))
            #expect(EventQueue.number(of: LockReason?.none) == 0)
        }

        @Test func manySubscriptionsHearTheSame() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            let all = (0..<20).map { _ in candado_events_open() }
            for events in all { #expect(next(events)?.state == EventQueue.number(of: .unlocked)) }
            try fixture.lock()
            for events in all {
                var kinds: [Int32] = []
                while kinds.last != CANDADO_EVENT_DID_LOCK.number,
                    isReadable(candado_events_descriptor(events), within: 10_000)
                {
                    if let event = next(events) { kinds.append(event.kind) }
                }
                #expect(kinds == [CANDADO_EVENT_WILL_LOCK.number, CANDADO_EVENT_DID_LOCK.number])
                #expect(candado_events_close(events) == 0)
            }
        }
    }
}
