import Glibc
import ProtectionModel

/// Which threads are using a file key at this moment. A lock waits for them, so none of them may wait for a lock.
enum KeyUse {
    private static let depthKey: pthread_key_t? = {
        var key = pthread_key_t()
        return pthread_key_create(&key, nil) == 0 ? key : nil
    }()

    /// How many uses the calling thread is inside of.
    private static var depth: Int {
        get { depthKey.map { Int(bitPattern: pthread_getspecific($0)) } ?? 0 }
        set { if let depthKey { pthread_setspecific(depthKey, UnsafeRawPointer(bitPattern: newValue)) } }
    }

    static func marked<Result>(_ body: () throws -> Result) throws -> Result {
        depth += 1
        defer { depth -= 1 }
        return try body()
    }

    /// Throws `busy` for a thread that is using a key.
    static func requireNone() throws(ProtectionError) {
        guard depth == 0 else {
            throw ProtectionError(.busy, "this cannot be done while the same thread uses a file key")
        }
    }
}
