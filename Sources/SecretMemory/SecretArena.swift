import CLinux
import Synchronization

/// The slabs of one process. A forked child does not inherit them (their pages are missing there): it gets an arena of
/// its own when it makes its first secret, and never touches its parent's.
///
/// Which arena is this process's stands in a page that the kernel wipes in every child. So no lock of the parent's is
/// ever waited for in a child, and telling the two apart costs one load.
final class SecretArena: Sendable {
    /// Where a secret lies. `slab` is nil for one with a mapping of its own.
    struct Place: @unchecked Sendable {
        let address: UnsafeMutableRawPointer
        let slab: Int?
    }

    private struct State {
        var slabs: [SecretSlab] = []
        var firstSlabWithRoom = 0
        var slotsInUse = 0
        var worstKind: SecretMemory.Kind?
    }

    private let state = Mutex(State())

    // MARK: Which arena

    private struct WipedPage: @unchecked Sendable {
        let address: UnsafeMutableRawPointer?
    }

    private static let page: WipedPage = {
        var address: UnsafeMutableRawPointer?
        return candado_map_wiped_on_fork(&address) == 0 ? WipedPage(address: address) : WipedPage(address: nil)
    }()

    /// Serves a process in which the page cannot be mapped; such a process should not fork.
    private static let withoutPage = SecretArena()

    /// The address of this process's arena, or 0 when it has none yet.
    static var tokenIfAny: UInt {
        guard let page = page.address else { return token(of: withoutPage) }
        return UInt(candado_load_word(page))
    }

    static var token: UInt { token(of: current) }

    static var existsInThisProcess: Bool { tokenIfAny != 0 }

    /// This process's arena. It is never freed: an address that was an arena's is never another's.
    static var current: SecretArena {
        guard let page = page.address else { return withoutPage }
        var word = candado_load_word(page)
        if word == 0 {
            let candidate = Unmanaged.passRetained(SecretArena())
            let bits = UInt(bitPattern: candidate.toOpaque())
            word = candado_store_word_if_zero(page, bits)
            if word != bits { candidate.release() }
        }
        guard let pointer = UnsafeRawPointer(bitPattern: UInt(word)) else { return withoutPage }
        return Unmanaged<SecretArena>.fromOpaque(pointer).takeUnretainedValue()
    }

    static func token(of arena: SecretArena) -> UInt {
        UInt(bitPattern: Unmanaged.passUnretained(arena).toOpaque())
    }

    // MARK: Slots

    static func slots(for count: Int) -> Int {
        (count + SecretMemory.slotSize - 1) / SecretMemory.slotSize
    }

    /// Whole slabs' worth of bytes for a secret that is larger than a slab.
    private static func ownMappingSize(for count: Int) -> Int {
        (count + SecretSlab.size - 1) / SecretSlab.size * SecretSlab.size
    }

    /// Takes zero-filled room for `count` bytes.
    func take(_ count: Int) throws(SecretMemoryError) -> Place {
        let slots = Self.slots(for: count)
        if slots > SecretSlab.slotCount {
            // Outside the lock: a large one takes the kernel milliseconds, in which others want their small ones.
            let mapping = try SecretMapping.make(size: Self.ownMappingSize(for: count))
            return state.withLock { state in
                Self.note(mapping.kind, in: &state)
                state.slotsInUse += slots
                return Place(address: mapping.address, slab: nil)
            }
        }
        return try state.withLock { (state) throws(SecretMemoryError) -> Place in
            while state.firstSlabWithRoom < state.slabs.count, state.slabs[state.firstSlabWithRoom].freeSlots == 0 {
                state.firstSlabWithRoom += 1
            }
            for index in state.firstSlabWithRoom..<state.slabs.count {
                if let slot = state.slabs[index].take(slots) {
                    return Self.place(slot, slots, of: index, in: &state)
                }
            }
            let index = try Self.addSlab(to: &state)
            guard let slot = state.slabs[index].take(slots) else { throw .exhausted(errorNumber: 0) }
            return Self.place(slot, slots, of: index, in: &state)
        }
    }

    /// Gives room back. The caller has zeroed it.
    func give(_ place: Place, _ count: Int) {
        let slots = Self.slots(for: count)
        if place.slab == nil { candado_unmap(place.address, Self.ownMappingSize(for: count)) }
        state.withLock { state in
            state.slotsInUse -= slots
            guard let index = place.slab else { return }
            let offset = state.slabs[index].mapping.address.distance(to: place.address)
            state.slabs[index].give(offset / SecretMemory.slotSize, slots)
            state.firstSlabWithRoom = min(state.firstSlabWithRoom, index)
        }
    }

    var slotsInUse: Int { state.withLock { $0.slotsInUse } }

    var worstKind: SecretMemory.Kind {
        state.withLock { state in
            if state.worstKind == nil { _ = try? Self.addSlab(to: &state) }
            return state.worstKind ?? .unlocked
        }
    }

    private static func addSlab(to state: inout State) throws(SecretMemoryError) -> Int {
        let mapping = try SecretMapping.make(size: SecretSlab.size)
        note(mapping.kind, in: &state)
        state.slabs.append(SecretSlab(mapping))
        return state.slabs.count - 1
    }

    private static func place(_ slot: Int, _ slots: Int, of index: Int, in state: inout State) -> Place {
        state.slotsInUse += slots
        return Place(address: state.slabs[index].mapping.address + slot * SecretMemory.slotSize, slab: index)
    }

    private static func note(_ kind: SecretMemory.Kind, in state: inout State) {
        if kind.rawValue >= (state.worstKind ?? kind).rawValue { state.worstKind = kind }
    }
}
