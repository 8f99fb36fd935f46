import Cryptography
import ProtectionModel
import SecretMemory

/// The stored form: one canonical JSON object and a line feed. The member `authenticator` is an HMAC-SHA-256 over the
/// canonical form of the object without it. That envelope stays the same in every version, so that a keybag from the
/// future can be told from a damaged one.
extension KeybagDocument {
    static let formatName = "candado-keybag"
    static let version: UInt64 = 1
    /// Longer files are no keybags.
    static let maximumSize = 1 << 20

    /// The bytes to store.
    func encoded(authenticationKey: borrowing SecretBytes) throws(CryptographyError) -> [UInt8] {
        var members = body
        let authenticator = try Authenticator.authenticate(
            CanonicalJSON.object(members).encoded, key: authenticationKey)
        members["authenticator"] = .text(Hexadecimal.text(authenticator))
        return CanonicalJSON.object(members).encoded + [UInt8(ascii: "\n")]
    }

    private var body: [String: CanonicalJSON] {
        var members: [String: CanonicalJSON] = [
            "change": .number(change),
            "features": .number(0),
            "format": .text(Self.formatName),
            "identifier": .text(identifier.description),
            "version": .number(Self.version),
        ]
        var encodedClasses: [String: CanonicalJSON] = [:]
        for (keyClass, keys) in classes {
            encodedClasses[keyClass.name] = .object([
                "generations": .array(
                    keys.generations.map { key in
                        var entry: [String: CanonicalJSON] = [
                            "generation": .number(UInt64(key.generation)),
                            "wrapped": .text(Hexadecimal.text(key.wrapped)),
                        ]
                        if let publicKey = key.publicKey { entry["public"] = .text(Hexadecimal.text(publicKey)) }
                        return .object(entry)
                    }),
                "next": .number(UInt64(keys.next)),
            ])
        }
        members["classes"] = .object(encodedClasses)
        var slots: [String: CanonicalJSON] = [:]
        switch credential {
        case .passcode(let slot):
            slots["passcode"] = .object([
                "log_n": .number(UInt64(slot.cost.logN)), "p": .number(UInt64(slot.cost.p)),
                "r": .number(UInt64(slot.cost.r)), "salt": .text(Hexadecimal.text(slot.salt)),
                "wrapped": .text(Hexadecimal.text(slot.wrapped)),
            ])
        case .device(let wrapped): slots["device"] = .object(["wrapped": .text(Hexadecimal.text(wrapped))])
        case nil: break
        }
        if let recovery {
            slots["recovery"] = .object(["wrapped": .text(Hexadecimal.text(recovery.wrappedUserKey))])
            members["recovery"] = .object([
                "authentication": .text(Hexadecimal.text(recovery.wrappedAuthenticationKey)),
                "public": .text(Hexadecimal.text(recovery.publicKey)),
            ])
        }
        members["slots"] = .object(slots)
        return members
    }

    /// The identifier that stored bytes claim, before anything is authenticated: it says where the device key lies.
    static func claimedIdentifier(in bytes: [UInt8]) -> KeybagIdentifier? {
        guard case .object(let members)? = parse(bytes), case .text(let text)? = members["identifier"] else {
            return nil
        }
        return KeybagIdentifier(text)
    }

    private static func parse(_ bytes: [UInt8]) -> CanonicalJSON? {
        guard bytes.last == UInt8(ascii: "\n") else { return nil }
        return CanonicalJSON(canonical: Array(bytes.dropLast()))
    }

    /// Decodes stored bytes.
    ///
    /// Throws `damaged(keybag)` when they do not authenticate, and `needsNewerVersion` when they do but say things that
    /// this version does not know.
    init(decoding bytes: [UInt8], authenticationKey: borrowing SecretBytes) throws(ProtectionError) {
        guard case .object(var members)? = Self.parse(bytes) else {
            throw ProtectionError(.damaged(.keybag), "the keybag is not in its canonical form")
        }
        guard case .text(let text)? = members.removeValue(forKey: "authenticator"),
            let authenticator = Hexadecimal.bytes(text, count: 32)
        else {
            throw ProtectionError(.damaged(.keybag), "the keybag has no authenticator")
        }
        let authentic = try translatingErrors { () throws(CryptographyError) in
            try Authenticator.verify(authenticator, of: CanonicalJSON.object(members).encoded, key: authenticationKey)
        }
        guard authentic else {
            throw ProtectionError(.damaged(.keybag), "the keybag does not authenticate under this machine's device key")
        }
        guard case .text(Self.formatName)? = members["format"], case .number(let version)? = members["version"],
            case .number(let features)? = members["features"]
        else {
            throw ProtectionError(.damaged(.keybag), "the keybag has no version")
        }
        guard version == Self.version, features == 0 else {
            throw ProtectionError(.needsNewerVersion, "the keybag needs a newer version of candado")
        }
        try self.init(authenticated: members)
        guard isConsistent else {
            throw ProtectionError(.damaged(.keybag), "the keybag contradicts itself")
        }
    }

    private init(authenticated members: [String: CanonicalJSON]) throws(ProtectionError) {
        var fields = Fields(members)
        _ = try fields.text("format")
        _ = try fields.number("version")
        _ = try fields.number("features")
        guard let identifier = KeybagIdentifier(try fields.text("identifier")) else { throw Fields.malformed }
        self.identifier = identifier
        change = try fields.number("change")
        var encodedClasses = Fields(try fields.object("classes"))
        classes = [:]
        for keyClass in KeyClass.allCases {
            classes[keyClass] = try ClassKeys(decoding: try encodedClasses.object(keyClass.name))
        }
        try encodedClasses.end()

        var slots = Fields(try fields.object("slots"))
        let passcode = try slots.optionalObject("passcode")
        let device = try slots.optionalObject("device")
        let recoverySlot = try slots.optionalObject("recovery")
        let recoveryFacts = try fields.optionalObject("recovery")
        try slots.end()
        try fields.end()
        switch (passcode, device) {
        case (let members?, nil):
            var fields = Fields(members)
            let cost = Scrypt.Cost(
                logN: UInt8(try fields.number("log_n", to: 255)), r: UInt32(try fields.number("r", to: 1 << 31)),
                p: UInt32(try fields.number("p", to: 1 << 31)))
            credential = .passcode(
                PasscodeSlot(
                    salt: try fields.bytes("salt", count: 32), cost: cost,
                    wrapped: try fields.bytes("wrapped", count: 40)))
            try fields.end()
        case (nil, let members?):
            credential = .device(wrapped: try Self.decodeWrapped(members))
        case (nil, nil): credential = nil
        default: throw Fields.malformed
        }
        switch (recoverySlot, recoveryFacts) {
        case (let slotMembers?, let members?):
            var facts = Fields(members)
            recovery = Recovery(
                publicKey: try facts.bytes("public", count: 32),
                wrappedAuthenticationKey: try facts.bytes("authentication", count: 40),
                wrappedUserKey: try Self.decodeWrapped(slotMembers))
            try facts.end()
        case (nil, nil): recovery = nil
        default: throw Fields.malformed
        }
    }

    private static func decodeWrapped(_ members: [String: CanonicalJSON]) throws(ProtectionError) -> [UInt8] {
        var fields = Fields(members)
        let wrapped = try fields.bytes("wrapped", count: 40)
        try fields.end()
        return wrapped
    }
}

extension KeybagDocument.ClassKeys {
    fileprivate init(decoding members: [String: CanonicalJSON]) throws(ProtectionError) {
        var fields = Fields(members)
        next = Int(try fields.number("next", to: 256))
        for element in try fields.array("generations") {
            guard case .object(let members) = element else { throw Fields.malformed }
            var entry = Fields(members)
            generations.append(
                KeybagDocument.WrappedClassKey(
                    generation: UInt8(try entry.number("generation", to: 255)),
                    wrapped: try entry.bytes("wrapped", count: 40),
                    publicKey: entry.has("public") ? try entry.bytes("public", count: 32) : nil))
            try entry.end()
        }
        try fields.end()
    }
}

/// The members of one object, each taken once: what is left at the end is from the future.
private struct Fields {
    private var members: [String: CanonicalJSON]

    static let malformed = ProtectionError(.damaged(.keybag), "the keybag has a member of the wrong form")

    init(_ members: [String: CanonicalJSON]) { self.members = members }

    func has(_ name: String) -> Bool { members[name] != nil }

    mutating func text(_ name: String) throws(ProtectionError) -> String {
        guard case .text(let text)? = members.removeValue(forKey: name) else { throw Self.malformed }
        return text
    }

    mutating func number(
        _ name: String, to largest: UInt64 = CanonicalJSON.largestNumber
    ) throws(ProtectionError) -> UInt64 {
        guard case .number(let number)? = members.removeValue(forKey: name), number <= largest else {
            throw Self.malformed
        }
        return number
    }

    mutating func bytes(_ name: String, count: Int) throws(ProtectionError) -> [UInt8] {
        guard let bytes = Hexadecimal.bytes(try text(name), count: count) else { throw Self.malformed }
        return bytes
    }

    mutating func array(_ name: String) throws(ProtectionError) -> [CanonicalJSON] {
        guard case .array(let elements)? = members.removeValue(forKey: name) else { throw Self.malformed }
        return elements
    }

    mutating func object(_ name: String) throws(ProtectionError) -> [String: CanonicalJSON] {
        guard let object = try optionalObject(name) else { throw Self.malformed }
        return object
    }

    mutating func optionalObject(_ name: String) throws(ProtectionError) -> [String: CanonicalJSON]? {
        guard let value = members.removeValue(forKey: name) else { return nil }
        guard case .object(let members) = value else { throw Self.malformed }
        return members
    }

    func end() throws(ProtectionError) {
        guard members.isEmpty else {
            throw ProtectionError(.needsNewerVersion, "the keybag needs a newer version of candado")
        }
    }
}
