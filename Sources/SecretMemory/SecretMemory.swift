import CLinux
import Synchronization

/// What holds for all secret memory of this process. `docs/secret-memory.md`.
///
/// To keep a secret, use ``SecretBytes``; a program calls ``hardenProcess()`` when it starts and looks at ``kind`` to
/// warn. This module never logs, never writes a file, and gives no key bytes out except inside a closure.
///
/// 1. `SecretBytes.swift`: one secret and its owner.
/// 2. `SecretArena.swift`: the slabs of one process and which slots are taken.
/// 3. `SecretSlab.swift`: one mapping and its slots.
/// 4. `SystemRandom.swift`: random bytes from the kernel.
public enum SecretMemory {
    /// How well the memory is kept from others.
    public enum Kind: Int, Sendable, Hashable, CaseIterable {
        /// `memfd_secret`: not even the kernel's own map shows it; never swapped; in no dump.
        case secret
        /// Ordinary memory that is locked against swapping and left out of dumps.
        case locked
        /// Ordinary memory that could not be locked (`RLIMIT_MEMLOCK`): it may be swapped out. The program works, and
        /// should warn.
        case unlocked
    }

    /// Bytes of one slot: a secret takes whole slots.
    public static let slotSize = 32

    static let descriptorAllowed = Atomic<Bool>(true)

    /// The worst kind that has been used so far in this process. Makes the first slab if there is none yet, so that a
    /// program can warn when it starts. Thread-safe.
    public static var kind: Kind { SecretArena.current.worstKind }

    /// Says whether memory that is mapped from now on may be `memfd_secret`. Any use of that disables hibernation of
    /// the whole machine, so a user may prefer ordinary locked memory. Memory in use stays what it is.
    public static func configure(allowSecretMemoryDescriptor allowed: Bool) {
        descriptorAllowed.store(allowed, ordering: .relaxed)
    }

    /// Forbids core files and makes the process undumpable: its own user can no longer trace it or read its memory. A crash
    /// ends it without a word: Swift's own handler would print memory.
    /// What the system refuses is left as it was. Meant for programs, not for libraries inside someone's process.
    @discardableResult
    public static func hardenProcess() -> Bool {
        candado_harden_process() == 0
    }

    /// Slots that are taken in this process. Thread-safe.
    public static var slotsInUse: Int { SecretArena.current.slotsInUse }

    /// False in a forked child that has made no secret of its own: the secrets it inherited are its parent's.
    public static func ownsAddressesOfThisProcess() -> Bool { SecretArena.existsInThisProcess }

    /// Zeroes the stack below the caller, for after a function of someone else's that leaves secrets there.
    package static func clearStack() { candado_clear_stack() }

    /// Differs between a process and its forked children: what is cached beside a secret belongs to one of them.
    package static var processToken: UInt { SecretArena.token }
}
