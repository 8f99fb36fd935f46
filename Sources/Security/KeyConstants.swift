import Foundation

// Attributes of keys and certificates, and their values: Apple's names with Apple's strings (SecItem.h, SecKey.h,
// SecImportExport.h).

// MARK: - Attributes of certificates

/// The subject, as `Data`.
nonisolated(unsafe) public let kSecAttrSubject: CFString = NSString(string: "subj")
/// The issuer, as `Data`.
nonisolated(unsafe) public let kSecAttrIssuer: CFString = NSString(string: "issr")
/// The serial number, as `Data`.
nonisolated(unsafe) public let kSecAttrSerialNumber: CFString = NSString(string: "slnr")
/// The subject key identifier, as `Data`.
nonisolated(unsafe) public let kSecAttrSubjectKeyID: CFString = NSString(string: "skid")
/// The digest of the public key, as `Data`.
nonisolated(unsafe) public let kSecAttrPublicKeyHash: CFString = NSString(string: "pkhh")
/// The type: a number.
nonisolated(unsafe) public let kSecAttrCertificateType: CFString = NSString(string: "ctyp")
/// The encoding: a number.
nonisolated(unsafe) public let kSecAttrCertificateEncoding: CFString = NSString(string: "cenc")

// MARK: - Attributes of keys

/// Public, private or symmetric.
nonisolated(unsafe) public let kSecAttrKeyClass: CFString = NSString(string: "kcls")
/// A public key.
nonisolated(unsafe) public let kSecAttrKeyClassPublic: CFString = NSString(string: "0")
/// A private key.
nonisolated(unsafe) public let kSecAttrKeyClassPrivate: CFString = NSString(string: "1")
/// A symmetric key.
nonisolated(unsafe) public let kSecAttrKeyClassSymmetric: CFString = NSString(string: "2")
/// Finds a key: for public and private keys the digest of the public key.
nonisolated(unsafe) public let kSecAttrApplicationLabel: CFString = NSString(string: "klbl")
/// A tag of the program, as `Data`.
nonisolated(unsafe) public let kSecAttrApplicationTag: CFString = NSString(string: "atag")
/// The algorithm: one of the `kSecAttrKeyType…` values.
nonisolated(unsafe) public let kSecAttrKeyType: CFString = NSString(string: "type")
/// RSA.
nonisolated(unsafe) public let kSecAttrKeyTypeRSA: CFString = NSString(string: "42")
/// Elliptic curves. The older name.
nonisolated(unsafe) public let kSecAttrKeyTypeEC: CFString = NSString(string: "73")
/// Elliptic curves P-192, P-256, P-384 and P-521.
nonisolated(unsafe) public let kSecAttrKeyTypeECSECPrimeRandom: CFString = NSString(string: "73")
/// The size in bits.
nonisolated(unsafe) public let kSecAttrKeySizeInBits: CFString = NSString(string: "bsiz")
/// How many bits count.
nonisolated(unsafe) public let kSecAttrEffectiveKeySize: CFString = NSString(string: "esiz")
/// Whether the key is stored in the keychain.
nonisolated(unsafe) public let kSecAttrIsPermanent: CFString = NSString(string: "perm")
/// Whether the key leaves only wrapped.
nonisolated(unsafe) public let kSecAttrIsSensitive: CFString = NSString(string: "sens")
/// Whether the key may leave.
nonisolated(unsafe) public let kSecAttrIsExtractable: CFString = NSString(string: "extr")
/// Whether the key may encrypt.
nonisolated(unsafe) public let kSecAttrCanEncrypt: CFString = NSString(string: "encr")
/// Whether the key may decrypt.
nonisolated(unsafe) public let kSecAttrCanDecrypt: CFString = NSString(string: "decr")
/// Whether other keys may be derived from the key.
nonisolated(unsafe) public let kSecAttrCanDerive: CFString = NSString(string: "drve")
/// Whether the key may sign.
nonisolated(unsafe) public let kSecAttrCanSign: CFString = NSString(string: "sign")
/// Whether the key may verify.
nonisolated(unsafe) public let kSecAttrCanVerify: CFString = NSString(string: "vrfy")
/// Whether the key may wrap others.
nonisolated(unsafe) public let kSecAttrCanWrap: CFString = NSString(string: "wrap")
/// Whether the key may unwrap others.
nonisolated(unsafe) public let kSecAttrCanUnwrap: CFString = NSString(string: "unwp")
/// The token that holds the key.
nonisolated(unsafe) public let kSecAttrTokenID: CFString = NSString(string: "tkid")
/// The Secure Enclave.
nonisolated(unsafe) public let kSecAttrTokenIDSecureEnclave: CFString = NSString(string: "com.apple.setoken")
/// Attributes of the private key of a pair.
nonisolated(unsafe) public let kSecPrivateKeyAttrs: CFString = NSString(string: "private")
/// Attributes of the public key of a pair.
nonisolated(unsafe) public let kSecPublicKeyAttrs: CFString = NSString(string: "public")

// MARK: - Import

/// The passphrase of the data.
nonisolated(unsafe) public let kSecImportExportPassphrase: CFString = NSString(string: "passphrase")
/// The label of an imported item.
nonisolated(unsafe) public let kSecImportItemLabel: CFString = NSString(string: "label")
/// The identifier of an imported key.
nonisolated(unsafe) public let kSecImportItemKeyID: CFString = NSString(string: "keyid")
/// The trust of an imported chain.
nonisolated(unsafe) public let kSecImportItemTrust: CFString = NSString(string: "trust")
/// The chain of an imported identity.
nonisolated(unsafe) public let kSecImportItemCertChain: CFString = NSString(string: "chain")
/// An imported identity.
nonisolated(unsafe) public let kSecImportItemIdentity: CFString = NSString(string: "identity")

// MARK: - Shared credentials

/// A password that a web site and a program share.
nonisolated(unsafe) public let kSecSharedPassword: CFString = NSString(string: "spwd")
