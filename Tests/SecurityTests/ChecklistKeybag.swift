import Cryptography
import Keybag
import ProtectionModel
import SecretMemory

/// Keybags of the cheapest passcode.
enum ChecklistKeybag {
    static let cost = PasscodeCost.explicit(Scrypt.Cost(logN: 1, r: 1, p: 1))

    static func create(_ home: KeybagHome) throws -> Keybag {
        try Keybag.create(in: home, passcode: try passcode(), recoveryKey: nil, cost: cost)
    }

    static func passcode() throws -> SecretBytes { try SecretBytes(copying: Array("correct horse".utf8)) }
}
