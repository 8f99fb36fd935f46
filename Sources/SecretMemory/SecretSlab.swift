import CLinux

/// One mapping of secret memory: whole pages, kept from forked children and from dumps.
struct SecretMapping {
    let address: UnsafeMutableRawPointer
    let size: Int
    let kind: SecretMemory.Kind

    /// Maps zero-filled memory: the best kind that can be had.
    static func make(size: Int) throws(SecretMemoryError) -> SecretMapping {
        var address: UnsafeMutableRawPointer?
        if SecretMemory.descriptorAllowed.load(ordering: .relaxed), candado_map_secret(size, &address) == 0,
            let address
        {
            return SecretMapping(address: address, size: size, kind: .secret)
        }
        if candado_map_locked(size, &address) == 0, let address {
            return SecretMapping(address: address, size: size, kind: .locked)
        }
        let errorNumber = candado_map_unlocked(size, &address)
        guard errorNumber == 0, let address else { throw .exhausted(errorNumber: errorNumber) }
        return SecretMapping(address: address, size: size, kind: .unlocked)
    }

    func unmap() {
        candado_unmap(address, size)
    }
}

/// A mapping cut into slots, with one bit for each: set when it is taken. A free slot always holds zeros.
struct SecretSlab {
    static let size = 64 * 1024
    static let slotCount = size / SecretMemory.slotSize

    let mapping: SecretMapping
    private var taken = [UInt64](repeating: 0, count: slotCount / 64)
    private(set) var freeSlots = slotCount
    /// No word before this one has a free bit.
    private var firstWordWithRoom = 0

    init(_ mapping: SecretMapping) {
        self.mapping = mapping
    }

    /// Takes `count` adjoining slots and gives the first one's index, or nil when there is no such run.
    mutating func take(_ count: Int) -> Int? {
        guard count <= freeSlots else { return nil }
        while firstWordWithRoom < taken.count, taken[firstWordWithRoom] == .max { firstWordWithRoom += 1 }
        guard firstWordWithRoom < taken.count else { return nil }
        if count == 1 {
            let first = firstWordWithRoom * 64 + (~taken[firstWordWithRoom]).trailingZeroBitCount
            mark(first, 1, true)
            return first
        }
        var run = 0
        for slot in (firstWordWithRoom * 64)..<Self.slotCount {
            run = taken[slot / 64] & (1 << UInt64(slot % 64)) == 0 ? run + 1 : 0
            if run == count {
                let first = slot - count + 1
                mark(first, count, true)
                return first
            }
        }
        return nil
    }

    /// Gives slots back. Their bytes must have been zeroed.
    mutating func give(_ first: Int, _ count: Int) {
        mark(first, count, false)
        firstWordWithRoom = min(firstWordWithRoom, first / 64)
    }

    private mutating func mark(_ first: Int, _ count: Int, _ isTaken: Bool) {
        for slot in first..<(first + count) {
            taken[slot / 64] ^= 1 << UInt64(slot % 64)
        }
        freeSlots += isTaken ? -count : count
    }
}
