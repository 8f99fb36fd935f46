import Cryptography
import Glibc
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import ProtectedFiles

/// A container of a released format version, kept in `fixtures/containers`, under the golden keybag of that version.
struct GoldenContainer: Sendable {
    let name: String
    let protectionClass: ProtectionClass
    let length: Int
    /// SHA-256 of the content.
    let digest: [UInt8]
    /// Version control keeps no attributes.
    let attribute: [UInt8]
    let bytes: [UInt8]

    static let fixtures = FilePath("\(#filePath)")!.parent.parent.parent.appending("fixtures")
    static let directory = fixtures.appending("containers/v1")

    static func read(_ path: FilePath) throws -> [UInt8] {
        try SafeFile.read(path, maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
    }

    static func text(_ path: FilePath) throws -> String { String(decoding: try read(path), as: UTF8.self) }

    /// Each line of the manifest: name, class, length, digest and attribute.
    static func all() throws -> [GoldenContainer] {
        try text(directory.appending("manifest.txt")).split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let words = line.split(separator: " ").map(String.init)
            return GoldenContainer(
                name: words[0], protectionClass: try #require(ProtectionClass(name: words[1])),
                length: try #require(Int(words[2])), digest: try bytes(words[3]), attribute: try bytes(words[4]),
                bytes: try read(directory.appending(FilePath(words[0])!)))
        }
    }

    static func bytes(_ hexadecimal: String) throws -> [UInt8] {
        let digits = Array(hexadecimal)
        return try stride(from: 0, to: digits.count, by: 2).map {
            try #require(UInt8(String(digits[$0..<($0 + 2)]), radix: 16))
        }
    }

    static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The golden keybag in a private home, unlocked, and a directory for files.
    static func open() throws -> (directory: TemporaryDirectory, files: ProtectedFileSystem) {
        let directory = try TemporaryDirectory(.memory)
        for name: FilePath in ["home", "home/state", "files"] { try directory.makeDirectory(name) }
        let source = fixtures.appending("keybags/v1")
        for name: FilePath in [
            "home/keybag.json", "home/keybag.backup.json", "home/recovery-capsule", "home/state/device-key",
            "home/state/device-key.backup", "home/state/attempts",
        ] {
            try directory.write(try read(source.appending(name)), to: name)
        }
        let keybag = try Keybag.open(KeybagHome(directory: directory.appending("home")), clock: TestClock())
        let passcode = try read(source.appending("passcode"))
        try keybag.unlock(passcode: try SecretBytes(count: passcode.count) { $0.copyBytes(from: passcode) })
        return (directory, ProtectedFileSystem(keys: keybag))
    }

    /// Makes the file as the manifest describes it.
    static func put(_ bytes: [UInt8], attribute: [UInt8]?, at path: FilePath) throws {
        let system = LinuxSystemCalls.shared
        let file = try system.openFile(path, [.write, .create, .truncate])
        try bytes.withUnsafeBytes { try system.writeFully(file.number, $0, at: 0) }
        if let attribute {
            try system.setAttribute(KeyRecord.attributeName, of: file.number, to: attribute, replacing: .allowed)
        } else {
            try system.removeAttribute(KeyRecord.attributeName, of: file.number)
        }
    }
}
