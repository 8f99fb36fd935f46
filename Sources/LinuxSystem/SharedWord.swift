import CLinux

/// Operations on words in memory that two processes share. All are atomic and free of locks, so that a process which is
/// stopped or killed between two of them holds nobody up. Words lie at multiples of their size; the caller sees to it
/// that the memory is mapped, and mapped writable where it is written. Thread-safe.
public enum SharedWord {
    /// Reads 64 bits. What the writer wrote before ``store64(_:_:)`` is seen by what follows (acquire).
    @inline(__always)
    public static func load64(_ p: UnsafeRawPointer) -> UInt64 { candado_load_64(p) }

    /// Writes 64 bits, after all that was written before (release).
    @inline(__always)
    public static func store64(_ p: UnsafeMutableRawPointer, _ v: UInt64) { candado_store_64(p, v) }

    /// Reads 32 bits (acquire).
    @inline(__always)
    public static func load32(_ p: UnsafeRawPointer) -> UInt32 { candado_load_32(p) }

    /// Writes 32 bits (release).
    @inline(__always)
    public static func store32(_ p: UnsafeMutableRawPointer, _ v: UInt32) { candado_store_32(p, v) }

    /// Adds, wrapping around, in one order for all processes. Returns the value before.
    @inline(__always)
    @discardableResult
    public static func add32(_ p: UnsafeMutableRawPointer, _ v: UInt32) -> UInt32 { candado_add_32(p, v) }

    /// Subtracts, wrapping around, in one order for all processes. Returns the value before.
    @inline(__always)
    @discardableResult
    public static func subtract32(_ p: UnsafeMutableRawPointer, _ v: UInt32) -> UInt32 { candado_subtract_32(p, v) }

    /// Nothing that stands after it is done before what stands ahead of it, as all processes see it.
    @inline(__always)
    public static func fence() { candado_fence() }

    /// Copies words of 8 bytes out of shared memory, each in one piece but in no order among themselves; all are read
    /// before what follows. A writer may be at work meanwhile: look at its counter before and after.
    @inline(__always)
    public static func copyWords(from source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int) {
        candado_copy_words(source, target, count)
    }

    /// Writes zero into words of 8 bytes; the compiler may not leave it out. Call ``fence()`` where the order counts.
    @inline(__always)
    public static func clearWords(_ p: UnsafeMutableRawPointer, count: Int) { candado_clear_words(p, count) }

    /// Makes the calling thread the holder of a word: writes its thread number into it, and has the kernel set
    /// `FUTEX_OWNER_DIED` (`0x4000_0000`) and clear the number when the thread ends, in whatever way the process dies
    /// (also when it executes another program).
    ///
    /// The thread must live as long as the process, or its end is taken for the process's; the memory must stay mapped,
    /// writable, until then. The thread's list of robust locks is replaced for good: robust mutexes of the C library must
    /// not be used on it afterwards, as nobody would be told of their holder's death. The list takes some 40 bytes of
    /// this process that are never freed.
    ///
    /// Throws `EBUSY` when this thread holds a word already, `EINVAL` when the word is not aligned to 4 bytes.
    public static func holdRobustly(_ p: UnsafeMutableRawPointer) throws(SystemError) {
        let error = candado_hold_robustly(p)
        if error != 0 { throw SystemError(call: "set_robust_list", errorNumber: error) }
    }

    /// What the value of such a word tells: true while its holder lives. False when nobody ever held it, or the holder
    /// died.
    @inline(__always)
    public static func isHeld(_ value: UInt32) -> Bool { value & 0x3FFF_FFFF != 0 && value & 0x4000_0000 == 0 }
}
