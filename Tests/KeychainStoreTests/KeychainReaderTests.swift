import Cryptography
import KeychainModel
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag
@testable import KeychainStore

/// The format page: its worked example, and a program in another language that was written from it alone.
@Suite struct KeychainReaderTests {
    private static let package: FilePath = {
        let file: FilePath = #filePath
        return file.parent.parent.parent
    }()
    private static let script = package.appending("docs/formats/reader/keychain_reader.py")

    private static let hasReader: Bool = {
        (try? Command.run("python3", ["-c", "import cryptography"]))?.status == 0
    }()
    private static let reasonToSkip: Comment = "python3 has no module 'cryptography' (python3-cryptography)"

    private func reader(_ arguments: [String]) throws -> CommandResult {
        try Command.run("python3", [Self.script.description] + arguments)
    }

    private func file(_ path: FilePath) throws -> [UInt8] {
        try SafeFile.read(
            Self.package.appending(path), maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
    }

    // MARK: The worked example

    /// The named blocks of hexadecimal digits of the page.
    private func page() throws -> [String: String] {
        var blocks: [String: String] = [:]
        var current: String?
        let text = String(decoding: try file("docs/formats/keychain.md"), as: UTF8.self)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```hex "), current == nil {
                current = String(line.dropFirst(7))
            } else if line.hasPrefix("```") {
                current = nil
            } else if let name = current {
                blocks[name, default: ""] += line
            }
        }
        return blocks
    }

    private func bytes(_ text: String?) throws -> [UInt8] {
        let digits = Array(try #require(text).utf8)
        return try stride(from: 0, to: digits.count, by: 2).map { index in
            try #require(UInt8(String(decoding: digits[index..<(index + 2)], as: UTF8.self), radix: 16))
        }
    }

    private static let attributes: ItemDictionary = [
        "acct": .text("ana"), "svce": .text("mail"), "gena": .data([1, 2]), "cdat": .date(0), "mdat": .date(1.5),
    ]

    @Test func theItemOfThePageIsOneToTheProduct() throws {
        let page = try page()
        #expect(try SealedAttributes.encode(Self.attributes) == bytes(page["attributes"]))
        let classKey = try SecretBytes(copying: Array(0x41...0x60 as ClosedRange<UInt8>))
        let metadataKey = try KeySchedule.itemMetadataKey(classKey: classKey)
        #expect(metadataKey.withUnsafeBytes { hexadecimal($0) } == page["metadata-key"])
        let secretKey = try KeySchedule.itemSecretWrappingKey(classKey: classKey)
        #expect(secretKey.withUnsafeBytes { hexadecimal($0) } == page["secret-wrapping-key"])

        let protection = SealedProtection(keys: try ExampleKeys())
        let header = ItemHeader(
            itemClass: .genericPassword, identifier: Array(0...15), accessGroup: "org.example.app",
            isSynchronizable: false, accessibility: .whenUnlocked)
        let row = ItemRow(
            header: header, primaryKey: LookupDigest(try bytes(page["primary-key"])),
            digests: [
                "acct": LookupDigest(try bytes(page["digest-acct"])),
                "svce": LookupDigest(try bytes(page["digest-svce"])),
                "gena": LookupDigest(try bytes(page["digest-gena"])),
            ],
            content: .sealed(metadata: try bytes(page["metadata"]), secret: try bytes(page["secret"])))
        let opened = try protection.attributes(of: row)
        #expect(try SealedAttributes.encode(opened) == bytes(page["attributes"]))
        #expect(try protection.secret(of: row)?.revealed == Array("contraseña".utf8))
        #expect(try protection.digestKeyCheck() == bytes(page["digest-key-check"]))
    }

    @Test(.enabled(if: hasReader, reasonToSkip)) func theExampleOfTheReaderIsThatOfThePage() throws {
        let lines = try reader(["example"]).outputText.split(separator: "\n").map(String.init)
        var example: [String: String] = [:]
        for index in stride(from: 0, to: lines.count - 1, by: 2) { example[lines[index]] = lines[index + 1] }
        #expect(try example == page() && example.count == 11)
    }

    // MARK: Databases

    /// The lines of JSON that the reader prints, as far as they are compared.
    private func items(_ arguments: [String]) throws -> [String] {
        let result = try reader(["items"] + arguments)
        #expect(result.status == 0, "\(result.errorText)")
        return result.outputText.split(separator: "\n").map(String.init)
    }

    @Test(.enabled(if: hasReader, reasonToSkip)) func theReaderFindsTheItemsOfTheGoldenDatabase() throws {
        // SQLite makes files beside a database that it opens.
        let directory = try TemporaryDirectory(.memory)
        try directory.write(try file("fixtures/keychains/v1/keychain.sqlite"), to: "golden")
        let golden = Self.package.appending("fixtures/keybags/v1").description
        let place = [directory.path.appending("golden").description, golden + "/home", golden + "/home/state"]
        let unlocked = try items(place + ["--passcode-file", golden + "/passcode"])
        #expect(unlocked.count == 11)
        for accessibility in Accessibility.allCases.map(\.rawValue) {
            let secret = hexadecimal(Array("secret \(accessibility)".utf8))
            let line = unlocked.first { $0.contains("\"accessibility\": \"\(accessibility)\"") } ?? ""
            #expect(line.contains("\"acct\": [\"text\", \"account \(accessibility)\"]"), "\(line)")
            #expect(line.contains("\"secret\": \"\(secret)\""), "\(line)")
        }
        let server = unlocked.last ?? ""
        #expect(server.contains("\"srvr\": [\"text\", \"server\"]"))
        #expect(server.contains("\"secret\": \"\(hexadecimal(Array("contraseña".utf8)))\""))
        #expect(unlocked.count { $0.contains("\"tombstone\": 1") } == 1)
        // Without the passcode only what can always be read opens, and look-ups go by digests alone.
        #expect(try items(place).count { $0.contains("\"locked\": true") } == 8)
        for (account, rows) in [("account ak", "[1]"), ("account akpu", "[7]"), ("nobody", "[]")] {
            #expect(try reader(["find"] + place + ["genp", "acct", account]).outputText == rows + "\n")
        }
    }

    @Test(.enabled(if: hasReader, reasonToSkip)) func theReaderReadsWhatTheProductWrites() throws {
        let fixture = try StorageFixture(.disk), tables = try fixture.tables()
        let attributes: ItemDictionary = [
            "labl": .text("ä\0"), "gena": .data([]), "port": .number(-1), "ptcl": .real(6), "atyp": .real(0.5),
            "path": .boolean(true), "sdmn": .null, "icmt": .list([.date(1), .dictionary(["k": .number(7)])]),
            "accc": .accessControl(AccessControl(.always)),
        ]
        for itemClass in ItemClass.stored {
            for secret in [nil, [], Array(repeating: 7, count: 60), Array(repeating: 8, count: 61)] as [[UInt8]?] {
                let row = try fixture.row(
                    attributes, secret: secret, group: "g\(secret?.count ?? -1)", isSynchronizable: true, of: itemClass)
                _ = try tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
            }
        }
        try fixture.directory.write(Array(StorageFixture.passcode.utf8), to: "passcode")
        let lines = try items(
            [
                fixture.database.description, fixture.home.directory.description,
                fixture.home.stateDirectory(of: fixture.keybag.keybagIdentifier).description, "--passcode-file",
                fixture.directory.path.appending("passcode").description,
            ])
        #expect(lines.count == 16)
        #expect(lines.allSatisfy { $0.contains("\"icmt\": [\"list\", [[\"date\", 1.0], [\"dictionary\", {\"k\"") })
        for secret in ["null", "\"\"", "\"" + String(repeating: "07", count: 60) + "\""] {
            #expect(lines.count { $0.contains("\"secret\": " + secret) } == 4)
        }
        // A digest that is not the attribute's.
        try change(fixture.database, "UPDATE genp SET digest_labl = zeroblob(16) WHERE number = 1")
        let result = try reader([
            "items", fixture.database.description, fixture.home.directory.description,
            fixture.home.stateDirectory(of: fixture.keybag.keybagIdentifier).description, "--passcode-file",
            fixture.directory.path.appending("passcode").description,
        ])
        #expect(result.status == 14)
    }

    @Test(.enabled(if: hasReader, reasonToSkip)) func theReaderReadsAnExportWithTheRecoveryKey() throws {
        let key = try RecoveryKey.generate()
        let fixture = try StorageFixture(.disk, recoveryKey: try RecoveryKey(text: try key.text()))
        let store = try fixture.store()
        for accessibility in Accessibility.allCases {
            let row = try fixture.password("\(accessibility)", secret: [accessibility.number], accessibility)
            _ = try store.tables.write { (writer) throws(KeychainError) in try writer.insert(row) }
        }
        #expect(try store.exportMigratable(to: fixture.directory.path.appending("export")) == 3)
        try fixture.directory.write(try #require(try fixture.keybag.recoveryCapsule()), to: "capsule")
        try fixture.directory.write(try key.text().withUnsafeBytes { Array($0) }, to: "key")
        let paths = ["export", "capsule", "key"].map { fixture.directory.path.description + "/" + $0 }
        let result = try reader(["export", paths[0], paths[1], "--recovery-key-file", paths[2]])
        #expect(result.status == 0, "\(result.errorText)")
        let lines = result.outputText.split(separator: "\n").map(String.init)
        #expect(lines.count == 3)
        for (line, number) in zip(lines, ["06", "07", "08"]) { #expect(line.contains("\"secret\": \"\(number)\"")) }
    }
}

/// The keys of the page's example.
private final class ExampleKeys: ItemKeyService {
    let keybagIdentifier: KeybagIdentifier
    let hasPasscode = true

    init() throws { keybagIdentifier = try #require(KeybagIdentifier("0c8ad503-3581-4d47-948b-959b5bb4c153")) }

    func withDigestKey<R>(_ body: (borrowing SecretBytes) throws(KeychainError) -> R) throws(KeychainError) -> R {
        try body(try Self.counted(from: 0x61))
    }

    func withItemKeys<R>(
        of accessibility: Accessibility, generation: UInt8?, _ body: (borrowing ItemKeys) throws(KeychainError) -> R
    ) throws(KeychainError) -> R {
        try body(try Self.keys())
    }

    private static func keys() throws(KeychainError) -> ItemKeys {
        let classKey = try counted(from: 0x41)
        do throws(CryptographyError) {
            return ItemKeys(
                generation: 0, metadata: try KeySchedule.itemMetadataKey(classKey: classKey),
                secretWrapping: try KeySchedule.itemSecretWrappingKey(classKey: classKey))
        } catch {
            throw KeychainError(error)
        }
    }

    private static func counted(from first: UInt8) throws(KeychainError) -> SecretBytes {
        do throws(SecretMemoryError) { return try SecretBytes(copying: (0..<32).map { first + $0 }) } catch {
            throw KeychainError(.outOfMemory, "no key")
        }
    }
}

private func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }.joined()
}
