import Security
import Testing

@Suite struct AccessControlTests {
    private static var protections: [CFString] {
        [
            kSecAttrAccessibleWhenUnlocked, kSecAttrAccessibleAfterFirstUnlock, kSecAttrAccessibleAlways,
            kSecAttrAccessibleWhenUnlockedThisDeviceOnly, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
            kSecAttrAccessibleAlwaysThisDeviceOnly, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly,
        ]
    }
    private static let flags: [SecAccessControlCreateFlags] = [
        .userPresence, .biometryAny, .biometryCurrentSet, .devicePasscode, .companion, .or, .and, .privateKeyUsage,
        .applicationPassword,
    ]

    @Test func theBitsAreApples() {
        #expect(Self.flags.map(\.rawValue) == [1, 2, 8, 16, 32, 1 << 14, 1 << 15, 1 << 30, 1 << 31])
        #expect(SecAccessControlCreateFlags.watch == .companion)
    }

    /// The rules of the header, for every set of flags.
    private func isAllowed(_ flags: SecAccessControlCreateFlags) -> Bool {
        if flags.contains(.or), flags.contains(.and) { return false }
        if flags.contains(.biometryAny), flags.contains(.biometryCurrentSet) { return false }
        if flags.contains(.userPresence) {
            return flags.subtracting([.userPresence, .applicationPassword, .privateKeyUsage]).isEmpty
        }
        return true
    }

    @Test func everySetOfFlagsIsMadeOrRefusedWithTheParameterError() throws {
        for combination in 0..<(1 << Self.flags.count) {
            var flags: SecAccessControlCreateFlags = []
            for index in Self.flags.indices where combination & 1 << index != 0 { flags.insert(Self.flags[index]) }
            var error: Unmanaged<CFError>?
            let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, flags, &error)
            #expect((control != nil) == isAllowed(flags), "\(flags)")
            guard control == nil else {
                #expect(error == nil)
                continue
            }
            let failure = try #require(error?.takeRetainedValue())
            #expect(CFErrorGetDomain(failure) as String == NSOSStatusErrorDomain)
            #expect(CFErrorGetCode(failure) == Int(errSecParam))
            #expect((failure as Error).localizedDescription.contains("access control"))
        }
        #expect(SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleAlways, .init(rawValue: 1 << 2), nil) == nil)
    }

    @Test func theProtectionIsAConstantOrItsTextAndNothingElse() {
        for protection in Self.protections {
            #expect(SecAccessControlCreateWithFlags(kCFAllocatorDefault, protection, [], nil) != nil)
            let text = protection as String
            #expect(SecAccessControlCreateWithFlags(nil, text as AnyObject, .userPresence, nil) != nil)
        }
        for protection: Any in ["", "akx", "f", 1, Data(), NSNull()] {
            #expect(SecAccessControlCreateWithFlags(nil, protection as AnyObject, [], nil) == nil)
        }
    }

    @Test func equalOnesAreEqual() {
        var made: [SecAccessControl] = []
        for protection in Self.protections {
            for flags in [[], .userPresence, .devicePasscode] as [SecAccessControlCreateFlags] {
                guard let one = SecAccessControlCreateWithFlags(nil, protection, flags, nil),
                    let other = SecAccessControlCreateWithFlags(nil, protection, flags, nil)
                else {
                    Issue.record("not made")
                    return
                }
                #expect(one == other)
                #expect(one.hash == other.hash)
                #expect(CFEqual(one, other))
                for another in made { #expect(one != another) }
                made.append(one)
            }
        }
    }
}
