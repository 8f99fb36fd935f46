import Keychain
import KeychainModel
import KeychainStore
import Testing

/// The code of what a call throws; nil when it does not.
func code<R>(_ body: () throws -> R) -> KeychainError.Code? {
    do {
        _ = try body()
        return nil
    } catch { return (error as? KeychainError)?.code }
}

func code<R>(_ body: () async throws -> R) async -> KeychainError.Code? {
    do {
        _ = try await body()
        return nil
    } catch { return (error as? KeychainError)?.code }
}

/// A keychain in memory with its lock.
struct MemoryFixture {
    let lock = SimulatedLock()
    let keychain: Keychain

    init(accessGroups: [String]? = nil) throws {
        keychain = try Keychain(.memory(lock, accessGroups: accessGroups))
    }
}

extension ItemSecret {
    /// What tests compare.
    var shown: [UInt8] { withUnsafeBytes { bytes in bytes.map { $0 } } }
}

let note = GenericPassword(service: "notes", account: "ann")
let mail = InternetPassword(server: "mail.example.com", account: "ann", protocol: .imaps, port: 993)
