import Glibc
import LinuxSystem
import Synchronization

/// Objects behind numbers that other languages keep: whatever number comes back, it is looked up, never followed.
///
/// A handle is 22 bits of place, one that says which table it is of, and 39 of generation. Each generation is used once, and
/// the first is random, so that no handle comes back and none of another process is taken for one. To use an object takes no
/// lock: who uses it is counted beside its generation, in one word, and the last one lets it go. Thread-safe.
final class HandleTable<Object: AnyObject & Sendable>: @unchecked Sendable {
    /// Where one object is. A cache line each.
    private struct Place: ~Copyable {
        /// From the top: the generation, whether the handle is open, and how many use the object. 0 while it is free.
        let word = Atomic<UInt64>(0)
        /// Retained. Valid for whoever is counted.
        var object: UnsafeMutableRawPointer?
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)
    }

    /// One user of an object, who has to be taken off the count.
    struct Use {
        fileprivate let place: UnsafeMutableRawPointer
        fileprivate let number: Int
    }

    private struct Room {
        var free: [Int] = []
        /// Places that were ever used.
        var used = 0
    }

    private static var placeBits: Int64 { 22 }
    private static var placesInBlock: Int { 1024 }
    private static var blockCount: Int { 1 << Int(placeBits) / placesInBlock }
    private static var lastGeneration: Int64 { (1 << 39) - 1 }
    private static var userBits: UInt64 { 24 }
    private static var openBit: UInt64 { 1 << userBits }
    private static var generationShift: UInt64 { userBits + 1 }

    /// Each is made when it is needed first. Never freed, like the table.
    private let blocks: UnsafeMutablePointer<Atomic<UnsafeMutableRawPointer?>>
    /// The bit of this table, in its place.
    private let kind: Int64
    private let generation: Atomic<Int64>
    private let room = Mutex(Room())

    /// `kind` is 0 or 1.
    init(kind: Int64) {
        self.kind = kind << Self.placeBits
        blocks = .allocate(capacity: Self.blockCount)
        for index in 0..<Self.blockCount { (blocks + index).initialize(to: Atomic(nil)) }
        var start: Int64 = 0
        withUnsafeMutableBytes(of: &start) { try? LinuxSystemCalls.shared.random(into: $0) }
        generation = Atomic(start & Self.lastGeneration)
    }

    private func nextGeneration() -> Int64 {
        while true {
            let next = generation.wrappingAdd(1, ordering: .relaxed).newValue & Self.lastGeneration
            if next != 0 { return next }
        }
    }

    /// Keeps an object. Nil when there are millions already.
    func insert(_ object: Object) -> Int64? {
        guard let number = takePlace(), let place = place(number) else { return nil }
        let generation = nextGeneration()
        place.pointee.object = Unmanaged.passRetained(object).toOpaque()
        place.pointee.word.store(UInt64(generation) << Self.generationShift | Self.openBit, ordering: .releasing)
        return generation << (Self.placeBits + 1) | kind | Int64(number)
    }

    private func takePlace() -> Int? {
        room.withLock { room in
            if let free = room.free.popLast() { return free }
            guard room.used < Self.blockCount * Self.placesInBlock else { return nil }
            if room.used % Self.placesInBlock == 0 {
                let block = UnsafeMutableRawPointer.allocate(
                    byteCount: Self.placesInBlock * MemoryLayout<Place>.stride, alignment: 64)
                let places = block.bindMemory(to: Place.self, capacity: Self.placesInBlock)
                for index in 0..<Self.placesInBlock { (places + index).initialize(to: Place()) }
                blocks[room.used / Self.placesInBlock].store(block, ordering: .releasing)
            }
            room.used += 1
            return room.used - 1
        }
    }

    @inline(__always)
    private func place(_ number: Int) -> UnsafeMutablePointer<Place>? {
        let block = blocks[number / Self.placesInBlock].load(ordering: .acquiring)
        return block?.assumingMemoryBound(to: Place.self).advanced(by: number % Self.placesInBlock)
    }

    /// The object of a handle, counted as in use: ``end(_:)`` has to follow. Nil for any other number.
    @inline(__always)
    func use(_ handle: Int64) -> (Unmanaged<Object>, Use)? { change(handle) { $0 + 1 } }

    /// The same, and the handle is closed: of several threads, one gets the object.
    func close(_ handle: Int64) -> (Unmanaged<Object>, Use)? { change(handle) { ($0 & ~Self.openBit) + 1 } }

    @inline(__always)
    private func change(_ handle: Int64, _ next: (UInt64) -> UInt64) -> (Unmanaged<Object>, Use)? {
        let kindBit: Int64 = 1 << Self.placeBits
        // The two bits above the generation are 0 in every handle.
        guard handle > 0, handle >> 62 == 0, handle & kindBit == kind else { return nil }
        let number = Int(handle & (kindBit - 1))
        guard let place = place(number) else { return nil }
        let wanted = UInt64(handle >> (Self.placeBits + 1)) << Self.generationShift | Self.openBit
        var word = place.pointee.word.load(ordering: .relaxed)
        while true {
            // Another generation, or a closed handle; or no further user can be counted.
            guard word & ~(Self.openBit - 1) == wanted, word & (Self.openBit - 1) < Self.openBit - 1 else { return nil }
            let result = place.pointee.word.weakCompareExchange(
                expected: word, desired: next(word), successOrdering: .acquiring, failureOrdering: .relaxed)
            if result.exchanged {
                guard let object = place.pointee.object else { return nil }
                return (Unmanaged.fromOpaque(object), Use(place: UnsafeMutableRawPointer(place), number: number))
            }
            word = result.original
        }
    }

    /// Takes a user off the count. The last one of a closed handle lets the object go.
    @inline(__always)
    func end(_ use: Use) {
        let place = use.place.assumingMemoryBound(to: Place.self)
        let word = place.pointee.word.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
        if word & (2 * Self.openBit - 1) == 0 { vacate(place, use.number) }
    }

    @inline(never)
    private func vacate(_ place: UnsafeMutablePointer<Place>, _ number: Int) {
        let object = place.pointee.object
        place.pointee.object = nil
        place.pointee.word.store(0, ordering: .releasing)
        room.withLock { $0.free.append(number) }
        if let object { Unmanaged<Object>.fromOpaque(object).release() }
    }
}
