/// Owns one descriptor and closes it once.
public struct Descriptor: ~Copyable, Sendable {
    /// The number, for the calls of ``SystemCalls``. Valid while this value lives.
    public private(set) var number: Int32
    /// What opened it, and will close it.
    public let system: any SystemCalls

    /// Takes over a descriptor that nobody else closes.
    public init(_ number: Int32, _ system: any SystemCalls) {
        self.number = number
        self.system = system
    }

    /// Closes it now and reports the error, which on network file systems can be the first word of a lost write. The
    /// descriptor is gone in either case.
    public consuming func close() throws(SystemError) {
        let open = number
        number = -1
        try system.close(open)
    }

    /// Gives it up unclosed: the caller owns the number now.
    public consuming func release() -> Int32 {
        let open = number
        number = -1
        return open
    }

    deinit {
        if number >= 0 { try? system.close(number) }
    }
}
