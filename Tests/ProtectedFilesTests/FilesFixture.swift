import Cryptography
import Keybag
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

@testable import ProtectedFiles

/// A private directory with an unlocked keybag of the cheapest passcode, and the file system over it.
struct FilesFixture {
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let keybag: Keybag
    let clock = TestClock()

    init(_ place: TemporaryDirectory.Place = .memory) throws {
        directory = try TemporaryDirectory(place)
        keybag = try Keybag.create(
            in: KeybagHome(directory: directory.appending("home")), passcode: try Self.secretPasscode(),
            recoveryKey: nil,
            cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)), clock: clock)
        try directory.makeDirectory("files")
    }

    static func secretPasscode() throws -> SecretBytes {
        let bytes = Array(passcode.utf8)
        return try SecretBytes(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    var files: ProtectedFileSystem { ProtectedFileSystem(keys: keybag) }

    func path(_ name: FilePath) -> FilePath { directory.appending("files").appending(name) }

    func lock() throws { _ = try keybag.lock(reason: .command) }

    func unlock() throws { try keybag.unlock(passcode: try Self.secretPasscode()) }
}

extension ProtectedFileSystem {
    /// Writes bytes as a whole file.
    func write(_ content: [UInt8], to path: FilePath, class protectionClass: ProtectionClass? = nil) throws {
        let position = Mutex(0)
        try write(to: path, class: protectionClass) { buffer in
            position.withLock { position in
                let count = min(buffer.count, content.count - position)
                buffer.copyBytes(from: content[position..<(position + count)])
                position += count
                return count
            }
        }
    }

    /// The whole content.
    func contents(of path: FilePath) throws -> [UInt8] {
        let content = Mutex<[UInt8]>([])
        try read(path) { bytes in content.withLock { $0.append(contentsOf: bytes) } }
        return content.withLock { $0 }
    }
}

extension ProtectedFile {
    /// All content through positioned reads.
    func allContent() throws -> [UInt8] {
        let count = Int(try length)
        var content = [UInt8](repeating: 0xEE, count: count)
        let read = try content.withUnsafeMutableBytes { try self.read(into: $0, at: 0) }
        precondition(read == count)
        return content
    }

    func write(_ bytes: [UInt8], at offset: Int) throws {
        try bytes.withUnsafeBytes { try write($0, at: UInt64(offset)) }
    }

    func read(_ count: Int, at offset: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = try bytes.withUnsafeMutableBytes { try read(into: $0, at: UInt64(offset)) }
        return Array(bytes[..<got])
    }
}

/// Bytes that differ from place to place, so that a chunk in the wrong place shows.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for _ in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        bytes.append(UInt8(truncatingIfNeeded: state))
    }
    return bytes
}

/// The code of the error that `body` throws; nil when it throws none.
func code<Value>(_ body: () throws -> Value) -> ProtectionError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? ProtectionError)?.code
    }
}

/// Content lengths at every border of the layout.
let borderLengths: [Int] = {
    let chunk = 4096
    let group = 76 * chunk
    return [
        0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 5000, group - 1, group, group + 1, group + chunk,
        group + 102 * chunk - 1, group + 102 * chunk, group + 102 * chunk + 1, group + 3 * 102 * chunk + 17,
    ]
}()
