import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory

@testable import KeychainStore

/// A whole database file that somebody else wrote: whatever is asked of it, the answer is an error or items.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let directory = Place.directory else { return 0 }
    let path = directory.appending("keychain.sqlite")
    let system = LinuxSystemCalls.shared
    guard let opened = try? system.openFile(directory, [.read, .directory]),
        let names = try? system.entries(opened.number).map(\.name)
    else { return 0 }
    for name in names { try? system.unlink(name, in: opened.number) }
    guard let file = try? system.openFile(path, [.write, .create, .exclusive]) else { return 0 }
    try? system.writeFully(file.number, UnsafeRawBufferPointer(start: start, count: count), at: 0)
    guard let keys = Place.keys, let store = try? KeychainStore.open(path, keys: keys) else { return 0 }
    let caller = Caller(
        applicationIdentifier: "org.example.app", accessGroups: ["org.example.app"], source: .administrator)
    for itemClass in ["genp", "inet"] {
        let query: ItemDictionary = ["class": .text(itemClass), "m_Limit": .text("m_LimitAll")]
        for request in [
            KeychainRequest.list(query), .find(query.merging(["r_Data": .boolean(true)]) { $1 }),
            .add(["class": .text(itemClass), "acct": .text("a")]), .delete(query),
        ] {
            do throws(KeychainError) {
                try store.perform(request, as: caller) { _ in }
            } catch {
                // Damage is met once; then there is a new database.
                precondition(error.code != .malformed)
            }
        }
    }
    _ = try? store.condition()
    return 0
}

private enum Place {
    static let keys = FixedKeys()
    static let directory: FilePath? = {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        guard let path = FilePath(base + "/keychain-\(getpid())") else { return nil }
        try? LinuxSystemCalls.shared.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        return path
    }()
}

/// Keys that are always there.
private final class FixedKeys: ItemKeyService {
    let keybagIdentifier: KeybagIdentifier
    let hasPasscode = true

    init?() {
        guard let identifier = KeybagIdentifier("c0ffee00-0000-4000-8000-000000000000") else { return nil }
        keybagIdentifier = identifier
    }

    func withDigestKey<R>(_ body: (borrowing SecretBytes) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try body(try Self.key(1))
    }

    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?, _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        try body(ItemKeys(generation: generation ?? 0, metadata: try Self.key(2), secretWrapping: try Self.key(3)))
    }

    private static func key(_ byte: UInt8) throws(KeychainError) -> SecretBytes {
        do throws(SecretMemoryError) { return try SecretBytes(copying: repeatElement(byte, count: 32)) } catch {
            throw KeychainError(.outOfMemory, "no key")
        }
    }
}
