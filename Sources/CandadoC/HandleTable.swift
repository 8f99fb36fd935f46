import Glibc
import LinuxSystem
import Synchronization

/// Objects behind numbers that other languages keep: whatever number comes back, it is looked up, never followed.
///
/// A handle is 5 bits of shard, 18 of place, one that says which table it is of, and 39 of generation. Each generation is used
/// once, and the first is random, so that no handle comes back and none of another process is taken for one. Lookups of
/// different handles hardly ever meet in one shard's lock. Thread-safe.
final class HandleTable<Object: AnyObject & Sendable>: @unchecked Sendable {
    private struct Place {
        /// 0 while it is free.
        var generation: Int64
        var object: Object?
    }

    private struct Places {
        var all: [Place] = []
        var free: [Int] = []
    }

    /// A cache line each.
    private struct Shard: ~Copyable, Sendable {
        let places = Mutex(Places())
        private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0)
    }

    private static var shardBits: Int64 { 5 }
    private static var placeBits: Int64 { 18 }
    private static var generationShift: Int64 { shardBits + placeBits + 1 }
    private static var lastGeneration: Int64 { (1 << 39) - 1 }

    /// Never freed, like the table: what is found through a pointer costs no counting of references.
    private let shards: UnsafeMutablePointer<Shard>
    /// The bit of this table, in its place.
    private let kind: Int64
    private let nextShard = Atomic<Int64>(0)
    private let generation: Atomic<Int64>

    /// `kind` is 0 or 1.
    init(kind: Int64) {
        self.kind = kind << (Self.shardBits + Self.placeBits)
        let count = 1 << Int(Self.shardBits)
        shards = UnsafeMutableRawPointer.allocate(byteCount: count * MemoryLayout<Shard>.stride, alignment: 64)
            .bindMemory(to: Shard.self, capacity: count)
        for index in 0..<count { (shards + index).initialize(to: Shard()) }
        var start: Int64 = 0
        withUnsafeMutableBytes(of: &start) { try? LinuxSystemCalls.shared.random(into: $0) }
        generation = Atomic(start & Self.lastGeneration)
    }

    /// Keeps an object. Nil when there are millions already.
    func insert(_ object: Object) -> Int64? {
        let number = nextShard.add(1, ordering: .relaxed).oldValue & ((1 << Self.shardBits) - 1)
        let generation = nextGeneration()
        let place: Int? = shards[Int(number)].places.withLock { places in
            if let free = places.free.popLast() {
                places.all[free] = Place(generation: generation, object: object)
                return free
            }
            guard places.all.count < 1 << Self.placeBits else { return nil }
            places.all.append(Place(generation: generation, object: object))
            return places.all.count - 1
        }
        return place.map { generation << Self.generationShift | kind | Int64($0) << Self.shardBits | number }
    }

    private func nextGeneration() -> Int64 {
        while true {
            let next = generation.wrappingAdd(1, ordering: .relaxed).newValue & Self.lastGeneration
            if next != 0 { return next }
        }
    }

    /// The object of a handle, or nil for any other number.
    func object(_ handle: Int64) -> Object? {
        guard let (shard, place, generation) = parts(of: handle) else { return nil }
        return shards[shard].places.withLock { places in
            guard place < places.all.count, places.all[place].generation == generation else { return nil }
            return places.all[place].object
        }
    }

    /// Takes the object of a handle out: of several threads, one gets it.
    func remove(_ handle: Int64) -> Object? {
        guard let (shard, place, generation) = parts(of: handle) else { return nil }
        return shards[shard].places.withLock { places in
            guard place < places.all.count, places.all[place].generation == generation else { return nil }
            let object = places.all[place].object
            places.all[place] = Place(generation: 0, object: nil)
            places.free.append(place)
            return object
        }
    }

    @inline(__always)
    private func parts(of handle: Int64) -> (shard: Int, place: Int, generation: Int64)? {
        let kindBit: Int64 = 1 << (Self.shardBits + Self.placeBits)
        let generation = handle >> Self.generationShift
        guard generation > 0, handle & kindBit == kind else { return nil }
        let place = Int(handle >> Self.shardBits & ((1 << Self.placeBits) - 1))
        return (Int(handle & ((1 << Self.shardBits) - 1)), place, generation)
    }
}
