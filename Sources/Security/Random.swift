import SecretMemory

/// A generator of random bytes.
public typealias SecRandomRef = OpaquePointer

/// The generator of the kernel, the only one.
nonisolated(unsafe) public let kSecRandomDefault: SecRandomRef? = nil

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Fills `count` bytes with random ones from the kernel. Returns ``errSecSuccess``, ``errSecParam`` for a negative count or no
/// bytes, and ``errSecIO`` when the kernel gives none. Thread-safe.
public func SecRandomCopyBytes(_ generator: SecRandomRef?, _ count: Int, _ bytes: UnsafeMutableRawPointer?) -> Int32 {
    guard count != 0 else { return errSecSuccess }
    guard count > 0, let bytes, generator == kSecRandomDefault else { return errSecParam }
    do throws(SecretMemoryError) {
        try SystemRandom.fill(UnsafeMutableRawBufferPointer(start: bytes, count: count))
        return errSecSuccess
    } catch {
        return errSecIO
    }
}
