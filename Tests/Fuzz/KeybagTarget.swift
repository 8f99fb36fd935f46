import Cryptography
import SecretMemory

@testable import Keybag

/// The keybag's JSON: as it is, and authenticated by somebody who has the device key and chose what is in it.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    _ = KeybagDocument.claimedIdentifier(in: bytes)
    guard let key = try? SecretBytes.random(count: 32) else { return 0 }
    _ = try? KeybagDocument(decoding: bytes, authenticationKey: key)
    guard let value = CanonicalJSON(canonical: bytes) else { return 0 }
    precondition(value.encoded == bytes)
    guard case .object(var members) = value else { return 0 }
    members["authenticator"] = nil
    guard let authenticator = try? Authenticator.authenticate(CanonicalJSON.object(members).encoded, key: key) else {
        return 0
    }
    members["authenticator"] = .text(Hexadecimal.text(authenticator))
    let sealed = CanonicalJSON.object(members).encoded + [10]
    guard let document = try? KeybagDocument(decoding: sealed, authenticationKey: key) else { return 0 }
    let again = try? document.encoded(authenticationKey: key)
    precondition(again == sealed)
    return 0
}
