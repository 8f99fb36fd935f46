import LinuxSystem
import Synchronization

/// System calls that read and write less than asked, as the kernel may.
public enum ShortCalls {
    /// At most `maximum` bytes at a time.
    public static func limited(
        to maximum: Int, _ base: any SystemCalls = LinuxSystemCalls.shared
    ) -> any SystemCalls {
        InterceptedSystemCalls(base, intercept: { _ throws(SystemError) in .shorten(to: maximum) })
    }

    /// From 1 byte to all of them, the same way for the same seed.
    public static func random(seed: UInt64, _ base: any SystemCalls = LinuxSystemCalls.shared) -> any SystemCalls {
        let generator = Mutex(DeterministicRandom(seed: seed))
        return InterceptedSystemCalls(
            base,
            intercept: { (call) throws(SystemError) in
                guard let count = call.count, count > 1 else { return .proceed }
                let some = generator.withLock { Int64.random(in: 1...count, using: &$0) }
                return .shorten(to: Int(some))
            })
    }
}
