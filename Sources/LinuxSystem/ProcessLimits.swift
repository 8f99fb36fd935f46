import Glibc

/// What the system lets this process have.
public enum ProcessLimits {
    /// How many descriptors this process may have open at once (the soft limit). 1,024 where the system does not say.
    /// Thread-safe.
    public static var descriptorLimit: Int { read().map { clamped($0.rlim_cur) } ?? 1024 }

    /// Raises the soft limit of descriptors to the hard one, which needs no privilege. What the system refuses is left
    /// as it was. Returns the limit now. Meant for programs: a library would change what its host's children inherit,
    /// and `select` cannot deal with numbers of 1,024 and above.
    @discardableResult
    public static func raiseDescriptorLimit() -> Int {
        guard var limit = read() else { return descriptorLimit }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(resource, &limit)
        }
        return descriptorLimit
    }

    private static var resource: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_NOFILE.rawValue) }

    private static func read() -> rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }

    /// "No limit" is the highest number there is, which an `Int` does not hold.
    private static func clamped(_ value: rlim_t) -> Int { Int(clamping: value) }
}
