import FoundationEssentials
import KeychainModel
import SecretMemory

/// What a secret can be made of: a text (its UTF-8), bytes, or an `ItemSecret`.
///
/// The copy that the keychain works with lies in secret memory. A text, an array or `Data` is ordinary memory of the caller,
/// which nobody clears but the caller: whoever minds reads straight into an `ItemSecret`.
public protocol SecretSource: Sendable {
    /// A copy in secret memory. Throws `malformed` above 1 MiB, `outOfMemory`.
    func itemSecret() throws(KeychainError) -> ItemSecret
}

extension ItemSecret: SecretSource {
    public func itemSecret() -> ItemSecret { self }

    /// A copy of bytes, whatever holds them.
    convenience init(copyingAll bytes: some Collection<UInt8>) throws(KeychainError) {
        guard !bytes.isEmpty else {
            self.init()
            return
        }
        guard bytes.count <= Self.maximumCount else {
            throw KeychainError(
                .malformed, "a secret has at most \(Self.maximumCount) bytes, and this one \(bytes.count)")
        }
        do throws(SecretMemoryError) { self.init(try SecretBytes(copying: bytes)) } catch {
            throw KeychainError(.outOfMemory, "there is no memory for a secret", cause: error)
        }
    }

    /// The bytes in ordinary memory.
    var exposedBytes: [UInt8] {
        // The caller asked for them so.
        [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
            withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(target).copyMemory(from: source)
            }
            initialized = count
        }
    }

    /// The same.
    var exposedData: Data {
        var data = Data(count: count)
        data.withUnsafeMutableBytes { target in
            withUnsafeBytes { source in target.copyMemory(from: source) }
        }
        return data
    }

    /// The text in ordinary memory. Throws `undecodable` for bytes that are not UTF-8.
    func exposedText() throws(KeychainError) -> String {
        let text = withUnsafeBytes { bytes in String(validating: bytes, as: UTF8.self) }
        guard let text else { throw KeychainError(.undecodable, "the secret is not a text in UTF-8") }
        return text
    }
}

extension String: SecretSource {
    public func itemSecret() throws(KeychainError) -> ItemSecret { try ItemSecret(copyingAll: utf8) }
}

extension Array: SecretSource where Element == UInt8 {
    public func itemSecret() throws(KeychainError) -> ItemSecret { try ItemSecret(copyingAll: self) }
}

extension Data: SecretSource {
    public func itemSecret() throws(KeychainError) -> ItemSecret { try ItemSecret(copyingAll: self) }
}
