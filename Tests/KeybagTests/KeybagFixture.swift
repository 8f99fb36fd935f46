import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

@testable import Keybag

/// Bytes of a text as a secret.
func secret(_ text: String) -> SecretBytes { secret(Array(text.utf8)) }

func secret(_ bytes: [UInt8]) -> SecretBytes {
    do {
        var result = try SecretBytes(count: bytes.count)
        result.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
        return result
    } catch { preconditionFailure("\(error)") }
}

/// The code of the error that `body` throws; nil when it throws none.
func code<Value: ~Copyable>(_ body: () throws -> Value) -> ProtectionError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? ProtectionError)?.code
    }
}

/// A home in a private directory, a clock that stands still, and the cheapest passcode.
struct KeybagFixture {
    static let cost = Scrypt.Cost(logN: 1, r: 1, p: 1)
    static let passcode = "correct horse"

    let directory: TemporaryDirectory
    let clock = TestClock()
    var home: KeybagHome { KeybagHome(directory: directory.path.appending("home")) }

    init(_ place: TemporaryDirectory.Place = .memory) throws { directory = try TemporaryDirectory(place) }

    /// Another look at the tree that a crash left.
    init(image directory: TemporaryDirectory) { self.directory = directory }

    @discardableResult
    func create(
        passcode: String? = Self.passcode, recoveryKey: consuming RecoveryKey? = nil,
        system: any SystemCalls = LinuxSystemCalls.shared
    ) throws -> Keybag {
        try Keybag.create(
            in: home, passcode: passcode.map { secret($0) }, recoveryKey: recoveryKey, cost: .explicit(Self.cost),
            system: system, clock: clock)
    }

    func open(system: any SystemCalls = LinuxSystemCalls.shared) throws -> Keybag {
        try Keybag.open(home, system: system, clock: clock)
    }

    /// What unlocking a fresh keybag with a passcode ends in; nil for success.
    func unlockCode(_ passcode: String, system: any SystemCalls = LinuxSystemCalls.shared) throws -> ProtectionError
        .Code?
    {
        let keybag = try open(system: system)
        return code { try keybag.unlock(passcode: secret(passcode)) }
    }

    func file(_ name: FilePath) throws -> [UInt8] { try directory.read(FilePath("home").appending(name)) }

    func write(_ bytes: [UInt8], to name: FilePath) throws {
        try? LinuxSystemCalls.shared.unlink(home.directory.appending(name), in: currentDirectory)
        try directory.write(bytes, to: FilePath("home").appending(name))
    }
}

/// System calls that cannot open, or cannot read, one file that is there.
func unreadable(_ name: FilePath, whenOpened: Bool) -> any SystemCalls {
    let opened = Mutex<Set<Int32>>([])
    return InterceptedSystemCalls(
        LinuxSystemCalls.shared,
        intercept: { (call) throws(SystemError) in
            switch call.operation {
            case .open where whenOpened && call.path?.lastComponent == name: throw call.failure(EIO)
            case .read, .readAt:
                if opened.withLock({ $0.contains(call.descriptor ?? -1) }) { throw call.failure(EIO) }
            case .close: opened.withLock { _ = $0.remove(call.descriptor ?? -1) }
            default: break
            }
            return .proceed
        },
        observe: { call, result in
            guard call.operation == .open, call.path?.lastComponent == name else { return }
            opened.withLock { _ = $0.insert(Int32(result)) }
        })
}

extension FilePath {
    /// Not for literals: those cannot fail.
    init(_ text: StaticString) { self = FilePath("\(text)") ?? "." }
}

extension RecoveryKey {
    func copy() throws -> RecoveryKey { try RecoveryKey(text: try text()) }
}

/// A keybag with the interface of the conformance suite.
struct KeybagHarness: ClassKeyServiceHarness {
    let fixture: KeybagFixture
    let keybag: Keybag
    var service: any ClassKeyService { keybag }

    init() throws {
        fixture = try KeybagFixture()
        try fixture.create()
        keybag = try fixture.open()
    }

    func unlock() throws { try keybag.unlock(passcode: secret(KeybagFixture.passcode)) }
    func lock() throws { _ = try keybag.lock(reason: .command) }
}
