import Glibc
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

/// Databases of released format versions, kept in `fixtures/keychains`: every later version has to read them, with the
/// golden keybag.
@Suite struct DatabaseGoldenTests {
    private static let fixtures: FilePath = {
        let file = FilePath("\(#filePath)" as String) ?? "."
        return file.parent.parent.parent.appending("fixtures")
    }()

    private static func fixture(_ name: FilePath) throws -> [UInt8] {
        try SafeFile.read(fixtures.appending(name), maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
    }

    /// The golden keybag in a directory of its own, unlocked.
    private static func keybag(_ directory: TemporaryDirectory) throws -> Keybag {
        for name in ["home", "home/state", "home/keychain"] as [FilePath] { try directory.makeDirectory(name) }
        for name in [
            "home/keybag.json", "home/keybag.backup.json", "home/recovery-capsule", "home/state/device-key",
            "home/state/device-key.backup", "home/state/attempts",
        ] as [FilePath] {
            try directory.write(try fixture(FilePath("keybags/v1").appending(name)), to: name)
        }
        let keybag = try Keybag.open(
            KeybagHome(directory: directory.path.appending("home")), clock: TestClock())
        try keybag.unlock(passcode: try SecretBytes(copying: try fixture("keybags/v1/passcode")))
        return keybag
    }

    private static let caller = Caller(
        applicationIdentifier: "org.example.app", accessGroups: ["org.example.app"], source: .configured)

    /// What is in it: class, accessibility, account or server, secret.
    private static let items: [(ItemClass, Accessibility, String, String?)] =
        Accessibility.allCases.map { (.genericPassword, $0, "account \($0.rawValue)", "secret \($0.rawValue)") } + [
            (.internetPassword, .whenUnlocked, "server", "contraseña"),
            (.genericPassword, .afterFirstUnlock, "without a secret", nil),
            (.genericPassword, .afterFirstUnlock, "with an empty one", ""),
        ]

    @Test func version1IsRead() throws {
        let directory = try TemporaryDirectory(.memory)
        let keybag = try Self.keybag(directory)
        let bytes = try Self.fixture("keychains/v1/keychain.sqlite")
        try directory.write(bytes, to: "home/keychain/keychain.sqlite")
        let store = try KeychainStore.open(keybag.home.keychain, keys: keybag)
        for (itemClass, accessibility, name, secret) in Self.items {
            let key = itemClass == .genericPassword ? "acct" : "srvr"
            var found: [ItemResult] = []
            try store.perform(
                .find([
                    "class": .text(itemClass.rawValue), key: .text(name), "r_Attributes": .boolean(true),
                    "r_Data": .boolean(true),
                ]), as: Self.caller
            ) { result in found.append(result) }
            #expect(found.count == 1 && found.first?.accessibility == accessibility, "\(name)")
            #expect(found.first?.secret?.revealed == secret.map { Array($0.utf8) }, "\(name)")
        }
        let condition = try store.condition()
        #expect(condition.items == [.genericPassword: 9, .internetPassword: 1, .certificate: 0, .key: 0])
        #expect(condition.tombstones == 1 && condition.setAside == 0)
    }

    /// Makes the golden database in $CANDADO_WRITE_GOLDEN, once for each format version.
    @Test(.enabled(if: getenv("CANDADO_WRITE_GOLDEN") != nil, "writes fixtures, on request only"))
    func writeGoldenDatabase() throws {
        let target = try #require(getenv("CANDADO_WRITE_GOLDEN").flatMap { FilePath(String(cString: $0)) })
        let directory = try TemporaryDirectory(.memory)
        let keybag = try Self.keybag(directory)
        do {
            let store = try KeychainStore.open(keybag.home.keychain, keys: keybag)
            for (itemClass, accessibility, name, secret) in Self.items {
                var item: ItemDictionary = [
                    "class": .text(itemClass.rawValue), "pdmn": .text(accessibility.rawValue),
                    itemClass == .genericPassword ? "acct" : "srvr": .text(name),
                ]
                if let secret { item["v_Data"] = .secret(try itemSecret(Array(secret.utf8))) }
                try store.perform(.add(item), as: Self.caller) { _ in }
            }
            let deleted: ItemDictionary = ["class": .text("genp"), "acct": .text("gone"), "sync": .boolean(true)]
            try store.perform(.add(deleted), as: Self.caller) { _ in }
            try store.perform(.delete(deleted), as: Self.caller) { _ in }
        }
        let bytes = try directory.read("home/keychain/keychain.sqlite")
        try bytes.withUnsafeBytes {
            try AtomicFile.replace(
                target.appending("keychain.sqlite"), with: $0, exclusive: true, LinuxSystemCalls.shared)
        }
    }
}
