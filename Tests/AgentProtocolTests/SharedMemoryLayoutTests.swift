import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import AgentProtocol

/// A mapping of ordinary memory.
private final class Page {
    let mapping: SharedMapping

    init(pages: Int = 1) {
        let size = pages * 4096
        let address = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 4096)
        address.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        mapping = SharedMapping(address: address, size: size)
    }

    deinit { mapping.address.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: mapping.address, count: mapping.size) }
}

@Suite struct SharedMemoryLayoutTests {
    @Test func theLockWordKeepsEveryPart() {
        for state in LockState.allCases {
            for defaultClass in ProtectionClass.allCases {
                for mask in 0..<256 {
                    let open = ProtectionClass.allCases.filter { mask >> ($0.rawValue - 1) & 1 != 0 }
                    let make = ProtectionClass.allCases.filter { mask >> ($0.rawValue + 3) & 1 != 0 }
                    let word = LockWord(
                        epoch: UInt64(mask) << 30 | 5, state: state, canUnwrap: open, canWrap: make,
                        hasPasscode: mask % 3 == 0, defaultClass: defaultClass)
                    #expect(word.state == state && word.defaultClass == defaultClass)
                    #expect(word.epoch == UInt64(mask) << 30 | 5 && word.hasPasscode == (mask % 3 == 0))
                    for protectionClass in ProtectionClass.allCases {
                        #expect(word.canUnwrap(protectionClass) == open.contains(protectionClass))
                        #expect(word.canWrap(protectionClass) == make.contains(protectionClass))
                    }
                }
            }
        }
        #expect(LockWord(rawValue: 3).state == .locked)
    }

    /// The offsets of docs/formats/agent-protocol.md.
    @Test func theLockPageLiesAsItsPageSays() throws {
        let page = Page()
        let lockPage = LockPage(creatingIn: page.mapping)
        lockPage.word = LockWord(rawValue: 0x1122_3344_5566_7788)
        lockPage.deadline = 0x0102_0304_0506_0708
        #expect(Array(page.bytes[0..<8]) == Array("CANDLOCK".utf8))
        #expect(Array(page.bytes[8..<16]) == [1, 0, 0, 0, 0, 0, 0, 0])
        #expect(Array(page.bytes[16..<24]) == [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11])
        #expect(Array(page.bytes[24..<32]) == [8, 7, 6, 5, 4, 3, 2, 1])
        #expect(try LockPage(mapped: page.mapping).word == lockPage.word)
        #expect(throws: MalformedMessage.self) { try LockPage(mapped: Page().mapping) }
    }

    @Test func anAgentThatNobodyHoldsIsNotInForce() {
        let page = Page()
        let lockPage = LockPage(creatingIn: page.mapping)
        let clock = TestClock()
        #expect(!lockPage.isHeld && !lockPage.isInForce(clock))
        SharedWord.store32(page.mapping.address + 12, 4711)
        #expect(lockPage.isHeld && lockPage.isInForce(clock))
        lockPage.deadline = LockPage.nanoseconds(clock.secondsSinceBoot + 10)
        #expect(lockPage.isInForce(clock))
        clock.advance(by: 10)
        #expect(!lockPage.isInForce(clock))
        lockPage.deadline = 0
        #expect(lockPage.isInForce(clock))
        // What the kernel makes of it when the thread ends.
        SharedWord.store32(page.mapping.address + 12, 0x4000_0000)
        #expect(!lockPage.isHeld)
    }

    @Test func everySlotOfASlabHoldsAKeyOfItsOwn() {
        let page = Page(pages: 3)
        let slab = LoanSlab(page.mapping, pages: 3)
        #expect(slab.slotCount == 3 * 96)
        func key(_ slot: Int) -> [UInt8] { (0..<32).map { UInt8(truncatingIfNeeded: slot &* 31 &+ $0 &+ 1) } }
        for slot in 0..<slab.slotCount {
            key(slot).withUnsafeBytes { slab.put($0, in: slot, .lasting, serial: UInt64(slot) + 1) }
        }
        var buffer = [UInt8](repeating: 0, count: 32)
        for slot in 0..<slab.slotCount {
            #expect(buffer.withUnsafeMutableBytes { slab.copyKey(of: slot, serial: UInt64(slot) + 1, into: $0) })
            #expect(buffer == key(slot))
            #expect(!buffer.withUnsafeMutableBytes { slab.copyKey(of: slot, serial: UInt64(slot) + 2, into: $0) })
            #expect(key(slot).withUnsafeBytes { slab.holds($0, in: slot) })
            #expect(key(slot + 1).withUnsafeBytes { !slab.holds($0, in: slot) })
        }
        slab.guardLoan(in: 100, serial: 101)
        #expect(slab.state(of: 100) == (.guarded, 101))
        for slot in 0..<slab.slotCount { slab.clear(slot) }
        #expect(page.bytes.allSatisfy { $0 == 0 })
        #expect(!buffer.withUnsafeMutableBytes { slab.copyKey(of: 5, serial: 6, into: $0) })
    }

    /// A system with pages of 64 KiB maps more than was made.
    @Test func slotsAreCountedByThePagesOfTheSlabAndNotOfTheSystem() {
        let page = Page(pages: 16)
        #expect(LoanSlab(page.mapping, pages: 1).slotCount == 96)
        #expect(LoanSlab(page.mapping, pages: 17).slotCount == 16 * 96, "none lies outside")
    }

    @Test func usageIsCountedByEpochAndClass() {
        let page = Page()
        let usage = UsagePage(page.mapping)
        for epoch in 0..<8 as Range<UInt64> {
            usage.guarded(epoch: epoch).begin()
            #expect(usage.guarded(epoch: epoch).count == 1)
            #expect(usage.guarded(epoch: epoch + 2).count == 0, "the next unlocked epoch counts elsewhere")
            #expect(usage.lasting.count == 0)
            usage.guarded(epoch: epoch).end()
            #expect(usage.guarded(epoch: epoch).count == 0)
        }
        usage.lasting.begin()
        usage.lastUse = 77
        #expect(usage.lasting.count == 1 && usage.lastUse == 77)
        usage.lasting.end()
        #expect(page.bytes[0..<12].allSatisfy { $0 == 0 })
    }
}
