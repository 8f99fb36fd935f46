import Cryptography
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
            .add(["class": .text(itemClass), "acct": .text("a")]), .delete(["class": .text(itemClass)]),
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
    static let keys = GoldenKeys()
    static let directory: FilePath? = {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        guard let path = FilePath(base + "/keychain-\(getpid())") else { return nil }
        try? LinuxSystemCalls.shared.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        return path
    }()
}

/// The keys of the golden keybag, to which the golden database belongs, always there. They protect nothing.
private final class GoldenKeys: ItemKeyService {
    let keybagIdentifier: KeybagIdentifier
    let hasPasscode = true

    init?() {
        guard let identifier = KeybagIdentifier("0c8ad503-3581-4d47-948b-959b5bb4c153") else { return nil }
        keybagIdentifier = identifier
    }

    func withDigestKey<R>(_ body: (borrowing SecretBytes) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try body(try Self.secret("15e5b4c691f57784da83929d9119c5d373b63cd077cf8817dc3ec9b18d84fcdc"))
    }

    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?, _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        guard generation ?? 0 == 0 else { throw KeychainError(.undecodable, "no such generation") }
        return try body(try Self.keys(Self.classKeys[accessibility] ?? ""))
    }

    private static func keys(_ classKey: String) throws(KeychainError) -> ItemKeys {
        let classKey = try secret(classKey)
        do throws(CryptographyError) {
            return ItemKeys(
                generation: 0, metadata: try KeySchedule.itemMetadataKey(classKey: classKey),
                secretWrapping: try KeySchedule.itemSecretWrappingKey(classKey: classKey))
        } catch {
            throw KeychainError(.outOfMemory, "no keys", cause: error)
        }
    }

    private static func secret(_ digits: String) throws(KeychainError) -> SecretBytes {
        let digits = Array(digits.utf8)
        let bytes = stride(from: 0, to: digits.count, by: 2).map { index in
            UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16) ?? 0
        }
        do throws(SecretMemoryError) { return try SecretBytes(copying: bytes) } catch {
            throw KeychainError(.outOfMemory, "no key", cause: error)
        }
    }

    private static let classKeys: [Accessibility: String] = [
        .whenUnlocked: "0b219e080e990820d9ff9a387a5780dfa534e37b1487d038b7678bf646c97ec1",
        .afterFirstUnlock: "c3d6e61555423349ebfcb4612f973cfc235c126243ee34c17a1589fa5855483b",
        .always: "ba2fdeb05cf16d857995891c24f3849e037e5149cf144a3d56ae072b80631378",
        .whenUnlockedThisDeviceOnly: "0fe1968b1676a4338478e17f3e8a45585e69ae8b91a1e0a59108b794f8eeaf80",
        .afterFirstUnlockThisDeviceOnly: "13bb186050bc2f286d9fd5a254b35caf3caa09c429d3d41a47c96fccd67fa023",
        .alwaysThisDeviceOnly: "f4b56c1295a6977b772442589c797498f428aac18a5577f3f006a2691b73ba20",
        .whenPasscodeSetThisDeviceOnly: "698d7ace8c47d4da8252c4d8e2db0f88f7edc71b90f3c94f3c7954e3200391d0",
    ]
}
