import Testing

@testable import SecretMemory

@Suite struct SecretSlabTests {
    /// A sequence that is the same in every run.
    struct Sequence: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func takesAndGivesLikeASimpleModel(seed: UInt64) throws {
        var random = Sequence(state: seed)
        let mapping = try SecretMapping.make(size: SecretSlab.size)
        defer { mapping.unmap() }
        var slab = SecretSlab(mapping)
        var model = [Bool](repeating: false, count: SecretSlab.slotCount)
        var held: [(first: Int, count: Int)] = []
        for _ in 0..<1500 {
            if held.isEmpty || Int.random(in: 0..<5, using: &random) > 1 {
                let count = [1, 1, 1, 2, 3, 17, 64, 65, 400].randomElement(using: &random) ?? 1
                guard let first = slab.take(count) else {
                    // It may say no only when there is no such run.
                    var run = 0
                    var longest = 0
                    for taken in model {
                        run = taken ? 0 : run + 1
                        longest = max(longest, run)
                    }
                    #expect(longest < count)
                    continue
                }
                try #require(first >= 0 && first + count <= model.count)
                for slot in first..<(first + count) {
                    #expect(!model[slot], "slot \(slot) was taken twice")
                    model[slot] = true
                }
                held.append((first, count))
            } else {
                let index = Int.random(in: 0..<held.count, using: &random)
                let (first, count) = held.remove(at: index)
                slab.give(first, count)
                for slot in first..<(first + count) { model[slot] = false }
            }
            #expect(slab.freeSlots == model.count - held.reduce(0) { $0 + $1.count })
        }
    }

    @Test func everySlotOfASlabCanBeTakenAndNoMore() throws {
        let mapping = try SecretMapping.make(size: SecretSlab.size)
        defer { mapping.unmap() }
        var slab = SecretSlab(mapping)
        var seen = Set<Int>()
        while let slot = slab.take(1) { seen.insert(slot) }
        #expect(seen == Set(0..<SecretSlab.slotCount))
        #expect(slab.take(1) == nil)
        slab.give(1000, 1)
        #expect(slab.take(2) == nil)
        #expect(slab.take(1) == 1000)
    }
}
