import LinuxSystem

/// Memory in which the agent puts the file keys that one client borrows. The agent writes it; the client maps it for
/// reading and copies a key for the time of one operation.
///
/// A slab is a number of pages, all alike: ``slotsPerPage`` keys of 32 bytes, then as many words (UInt64), the rest zero.
/// A word says what its slot holds: the kind of loan in bits 0 to 7, the loan's serial number above.
public struct LoanSlab: @unchecked Sendable {
    /// What a slot holds.
    public enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        /// Nothing: the key's bytes are zero.
        case free = 0
        /// A key that stays until it is given back: classes C and D.
        case lasting = 1
        /// A key that ends with the agent: class B.
        case whileAgentLives = 2
        /// A key that ends with the next lock, and with the agent: class A.
        case guarded = 3
    }

    public static let pageSize = 4096
    public static let keySize = 32
    public static let slotsPerPage = 96
    private static let wordsOffset = slotsPerPage * keySize

    private let address: UnsafeMutableRawPointer
    /// Slots in all its pages.
    public let slotCount: Int

    /// `pages` of ``pageSize`` at the beginning of a mapping, which may be larger where the system's pages are.
    public init(_ mapping: SharedMapping, pages: UInt16) {
        address = mapping.address
        slotCount = min(Int(pages), mapping.size / Self.pageSize) * Self.slotsPerPage
    }

    private func page(of slot: Int) -> UnsafeMutableRawPointer {
        address + slot / Self.slotsPerPage * Self.pageSize
    }

    private func key(_ slot: Int) -> UnsafeMutableRawPointer {
        page(of: slot) + slot % Self.slotsPerPage * Self.keySize
    }

    private func word(_ slot: Int) -> UnsafeMutableRawPointer {
        page(of: slot) + Self.wordsOffset + slot % Self.slotsPerPage * 8
    }

    /// The word of a loan.
    public static func word(_ kind: Kind, serial: UInt64) -> UInt64 { serial << 8 | UInt64(kind.rawValue) }

    /// What a slot holds now: the kind and the serial number. A kind that no agent writes is read as `free`.
    public func state(of slot: Int) -> (kind: Kind, serial: UInt64) {
        let word = SharedWord.load64(word(slot))
        return (Kind(rawValue: UInt8(truncatingIfNeeded: word)) ?? .free, word >> 8)
    }

    // MARK: The agent's side

    /// Puts a key into a free slot. The word comes last: whoever sees it sees the whole key.
    public func put(_ key: UnsafeRawBufferPointer, in slot: Int, _ kind: Kind, serial: UInt64) {
        guard key.count == Self.keySize, let source = key.baseAddress else { return }
        SharedWord.copyWords(from: source, to: self.key(slot), count: 4)
        SharedWord.store64(word(slot), Self.word(kind, serial: serial))
    }

    /// Makes a loan end with the next lock: its file was raised to class A.
    public func guardLoan(in slot: Int, serial: UInt64) {
        SharedWord.store64(word(slot), Self.word(.guarded, serial: serial))
    }

    /// Takes a key away. The word goes first: whoever copies meanwhile finds that it changed.
    public func clear(_ slot: Int) {
        SharedWord.store64(word(slot), 0)
        SharedWord.fence()
        SharedWord.clearWords(key(slot), count: 4)
    }

    /// True when a slot holds this key.
    public func holds(_ other: UnsafeRawBufferPointer, in slot: Int) -> Bool {
        let key = UnsafeRawBufferPointer(start: key(slot), count: Self.keySize)
        return other.count == key.count && zip(key, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    // MARK: The client's side

    /// Copies the key of a loan, and says whether the loan was good until the last byte was copied: otherwise what was
    /// copied is worthless.
    public func copyKey(of slot: Int, serial: UInt64, into target: UnsafeMutableRawBufferPointer) -> Bool {
        guard target.count == Self.keySize, let start = target.baseAddress else { return false }
        let before = SharedWord.load64(word(slot))
        guard before >> 8 == serial, before & 0xFF != 0 else { return false }
        SharedWord.copyWords(from: key(slot), to: start, count: 4)
        SharedWord.fence()
        // The word's serial only: a loan that became guarded meanwhile is still the same key.
        let after = SharedWord.load64(word(slot))
        return after >> 8 == serial && after & 0xFF != 0
    }
}
