import Security
import Testing

@Suite struct TypeTests {
    @Test func everyObjectKnowsItsType() {
        let table: [(Any, CFTypeID)] = [
            ("a", CFStringGetTypeID()), (kSecClass, CFStringGetTypeID()),
            (NSMutableString(string: "a"), CFStringGetTypeID()),
            (Data([1]), CFDataGetTypeID()), (NSMutableData(), CFDataGetTypeID()), (Date(), CFDateGetTypeID()),
            (["a"], CFArrayGetTypeID()), (["a": 1], CFDictionaryGetTypeID()),
            (NSMutableDictionary(), CFDictionaryGetTypeID()), (1, CFNumberGetTypeID()), (1.5, CFNumberGetTypeID()),
            (true, CFBooleanGetTypeID()), (false, CFBooleanGetTypeID()), (kCFBooleanTrue as Any, CFBooleanGetTypeID()),
            (NSNumber(value: 0), CFNumberGetTypeID()), (NSNull(), CFNullGetTypeID()),
            (NSError(domain: "d", code: 1), CFErrorGetTypeID()),
            (
                SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleAlways, [], nil) as Any,
                SecAccessControlGetTypeID()
            ),
        ]
        for (value, type) in table { #expect(CFGetTypeID(value as AnyObject) == type, "\(value)") }
        let types = [
            CFStringGetTypeID(), CFDataGetTypeID(), CFDateGetTypeID(), CFArrayGetTypeID(), CFDictionaryGetTypeID(),
            CFNumberGetTypeID(), CFBooleanGetTypeID(), CFNullGetTypeID(), CFErrorGetTypeID(),
            SecAccessControlGetTypeID(), CFGetTypeID(NSSet()), CFGetTypeID(nil),
        ]
        #expect(Set(types).count == types.count)
    }

    @Test func equalObjectsAreEqual() {
        #expect(CFEqual(kSecClass, "class" as CFString))
        #expect(!CFEqual(kSecClass, kSecClassKey))
        #expect(CFEqual(nil, nil))
        #expect(!CFEqual(kSecClass, nil))
        #expect(CFEqual(Data([1]) as CFData, NSMutableData(data: Data([1]))))
    }

    @Test func aConstantAndItsTextAreOneKey() {
        var dictionary: [AnyHashable: Any] = ["acct": "me"]
        #expect(dictionary[kSecAttrAccount] as? String == "me")
        dictionary[kSecAttrAccount] = "you"
        #expect(dictionary.count == 1)
        #expect(dictionary["acct"] as? String == "you")
        #expect(AnyHashable(kSecAttrAccount) == AnyHashable("acct"))
        #expect(AnyHashable("acct").hashValue == AnyHashable(kSecAttrAccount).hashValue)
        #expect(AnyHashable(kSecAttrAccount) != AnyHashable(kSecAttrService))
        #expect([kSecAttrAccount: 1] as [CFString: Int] == ["acct" as CFString: 1])
        #expect(Set<AnyHashable>(["acct", kSecAttrAccount, NSMutableString(string: "acct")]).count == 1)
    }

    @Test func aValueOfNilRemovesItsKey() {
        let dictionary = NSMutableDictionary()
        dictionary.setValue("me", forKey: kSecAttrAccount as String)
        dictionary.setValue(Data([1]), forKey: "gena")
        #expect(reading(dictionary).query?.mapValues(\.shown) == ["acct": "text me", "gena": "data [1]"])
        dictionary.setValue(nil, forKey: "acct")
        dictionary.setValue(nil, forKey: "svce")
        #expect(reading(dictionary).query?.mapValues(\.shown) == ["gena": "data [1]"])
    }

    @Test func errorsTellWhatTheyAre() {
        let error: CFError = NSError(
            domain: "d", code: -50,
            userInfo: [NSLocalizedDescriptionKey: "what", NSLocalizedFailureReasonErrorKey: "why"])
        #expect(CFErrorGetDomain(error) as String == "d")
        #expect(CFErrorGetCode(error) == -50)
        #expect((CFErrorCopyUserInfo(error) as? [String: Any])?.count == 2)
        #expect(CFErrorCopyDescription(error) as String == "what")
        #expect(CFErrorCopyFailureReason(error) as String? == "why")
        #expect(CFErrorCopyRecoverySuggestion(error) == nil)
        #expect(CFErrorGetDomain(nil) == nil)
        #expect(kCFErrorDomainOSStatus as String == NSOSStatusErrorDomain)
        #expect(kCFErrorDomainPOSIX as String == NSPOSIXErrorDomain)
        #expect(kCFErrorDomainCocoa as String == NSCocoaErrorDomain)
    }

    @Test func theFunctionsHaveApplesTypes() {
        let add: (CFDictionary, UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus = SecItemAdd
        let copyMatching: (CFDictionary, UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus = SecItemCopyMatching
        let update: (CFDictionary, CFDictionary) -> OSStatus = SecItemUpdate
        let delete: (CFDictionary) -> OSStatus = SecItemDelete
        let random: (SecRandomRef?, Int, UnsafeMutableRawPointer) -> Int32 = SecRandomCopyBytes
        let message: (OSStatus, UnsafeMutableRawPointer?) -> CFString? = SecCopyErrorMessageString
        let wrong = [1: 1] as [AnyHashable: Any] as CFDictionary
        #expect(
            [add(wrong, nil), copyMatching(wrong, nil), update(wrong, wrong), delete(wrong)] == [-50, -50, -50, -50])
        var byte: UInt8 = 0
        #expect(random(kSecRandomDefault, 1, &byte) == errSecSuccess)
        #expect(message(0, nil) != nil)
        #expect(noErr == errSecSuccess)
        #expect(kCFAllocatorDefault == nil)
    }

    @Test func randomBytesFillWhatTheyAreGivenAndNoMore() {
        var bytes = [UInt8](repeating: 0, count: 66)
        var ones = Set<[UInt8]>()
        for _ in 0..<100 {
            let status = bytes.withUnsafeMutableBytes { SecRandomCopyBytes(nil, 64, $0.baseAddress.map { $0 + 1 }) }
            #expect(status == errSecSuccess)
            #expect(bytes[0] == 0 && bytes[65] == 0)
            ones.insert(Array(bytes[1..<65]))
        }
        #expect(ones.count == 100)
        #expect(SecRandomCopyBytes(kSecRandomDefault, 0, nil) == errSecSuccess)
        #expect(SecRandomCopyBytes(kSecRandomDefault, 1, nil) == errSecParam)
        #expect(bytes.withUnsafeMutableBytes { SecRandomCopyBytes(nil, -1, $0.baseAddress) } == errSecParam)
        #expect(SecRandomCopyBytes(OpaquePointer(bitPattern: 1), 1, &bytes) == errSecParam)
        var data = Data(count: 1 << 20)
        #expect(data.withUnsafeMutableBytes { SecRandomCopyBytes(kSecRandomDefault, $0.count, $0.baseAddress) } == 0)
        // 2^20 random bytes lack one of the values with a probability below 10^-1700.
        #expect(Set(data).count == 256)
    }

    @Test func aDictionaryIsCopiedIntoAnotherOfEitherClass() throws {
        let query =
            [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "me", kSecValueData: Data([1])] as CFDictionary
        let copy = NSDictionary(dictionary: query)
        let mutable = NSMutableDictionary(dictionary: query)
        mutable[kSecAttrService] = "service"
        #expect(copy == query)
        #expect(mutable.count == 4 && query.count == 3)
        #expect(mutable["acct"] as? String == "me")
        #expect(NSMutableDictionary(dictionary: ["a": 1]).count == 1)
        #expect(NSMutableDictionary(dictionary: [:]).count == 0)
        let literal: [String: Any] = ["class": "genp"]
        #expect(NSDictionary(dictionary: literal) as? [String: String] == ["class": "genp"])
    }
}
