import Security
import Testing

@testable import Security

@Suite struct ResultCodeTests {
    @Test func thereIsOneSentenceForEachOfTheCodesOfTheHeader() {
        let numbers = ResultMessages.sentences.keys
        // The header: 61 codes outside the long block, which has no gaps, under three more spellings.
        let block = Set((67585...67904).map { OSStatus(-$0) })
        #expect(block.isSubset(of: Set(numbers)))
        let named = numbers.filter { !block.contains($0) }
        #expect(named.count == 61 + 29)
        #expect(errSecDskFull == errSecDiskFull)
        #expect(errSecInvaldCRLAuthority == errSecInvalidCRLAuthority)
        #expect(errSecInvalidTupleCredendtials == errSecInvalidTupleCredentials)
        for (number, sentence) in ResultMessages.sentences {
            #expect(sentence.hasSuffix("."), "\(number)")
            #expect(sentence.first?.isUppercase == true, "\(number)")
            #expect(SecCopyErrorMessageString(number, nil) as String? == sentence)
        }
        // The same words for two numbers would tell nobody which it is.
        let header = ResultMessages.sentences.filter { $0.key > -26000 || $0.key < -34017 }
        #expect(Set(header.values).count == header.count)
    }

    /// Numbers by an independent source: what is known of each to code and to people.
    static let numbers: [(code: OSStatus, number: Int)] = [
        (errSecSuccess, 0),
        (errSecUnimplemented, -4),
        (errSecDiskFull, -34),
        (errSecIO, -36),
        (errSecOpWr, -49),
        (errSecParam, -50),
        (errSecWrPerm, -61),
        (errSecAllocate, -108),
        (errSecUserCanceled, -128),
        (errSecBadReq, -909),
        (errSecInternalComponent, -2070),
        (errSecCoreFoundationUnknown, -4960),
        (errSecNotAvailable, -25291),
        (errSecReadOnly, -25292),
        (errSecAuthFailed, -25293),
        (errSecDuplicateItem, -25299),
        (errSecItemNotFound, -25300),
        (errSecNoSuchAttr, -25303),
        (errSecInvalidItemRef, -25304),
        (errSecNoSuchClass, -25306),
        (errSecInteractionNotAllowed, -25308),
        (errSecInDarkWake, -25320),
        (errSecNoAccessForItem, -25243),
        (errSecInvalidOwnerEdit, -25244),
        (errSecPassphraseRequired, -25260),
        (errSecPkcs12VerifyFailure, -25264),
        (errSecNotSigner, -26267),
        (errSecDecode, -26275),
        (errSecMissingEntitlement, -34018),
        (errSecRestrictedAPI, -34020),
        (errSecServiceNotAvailable, -67585),
        (errSecConversionError, -67594),
        (errSecHostNameMismatch, -67602),
        (errSecInvalidExtendedKeyUsage, -67609),
        (errSecCRLNotFound, -67615),
        (errSecNetworkFailure, -67636),
        (errSecTrustSettingDeny, -67654),
        (errSecInternalError, -67671),
        (errSecInvalidSignature, -67688),
        (errSecInvalidKeyRef, -67712),
        (errSecUnsupportedKeyFormat, -67734),
        (errSecInvalidAttributeKey, -67748),
        (errSecMissingAttributeWrappedKeyFormat, -67805),
        (errSecVerifyFailed, -67808),
        (errSecCertificateExpired, -67818),
        (errSecCertificateRevoked, -67820),
        (errSecInvalidCRLAuthority, -67827),
        (errSecNotTrusted, -67843),
        (errSecInvalidTupleCredentials, -67852),
        (errSecDatabaseLocked, -67869),
        (errSecMissingRequiredExtension, -67880),
        (errSecTimestampMissing, -67882),
        (errSecTimestampRevocationNotification, -67898),
        (errSecCertificateIsCA, -67902),
        (errSecMissingQualifiedCertStatement, -67904),
    ]

    @Test func theNumbersAreApples() {
        for (code, number) in Self.numbers { #expect(Int(code) == number) }
    }

    @Test func anUnknownCodeIsNamedByItsNumber() {
        #expect(SecCopyErrorMessageString(12345, nil) as String? == "OSStatus 12345")
        #expect(SecCopyErrorMessageString(.min, nil) as String? == "OSStatus -2147483648")
    }

    @Test func theMessageOfADuplicateSaysItsKeyAndWhatToCall() throws {
        let message = try #require(SecCopyErrorMessageString(errSecDuplicateItem, nil) as String?)
        let words = [
            "account", "service", "access group", "synchronizable", "security domain", "server", "protocol",
            "authentication type", "port", "path", "SecItemUpdate", "SecItemDelete",
        ]
        for word in words { #expect(message.contains(word)) }
    }

    @Test func theMessageOfALockedItemSaysThatItIsThere() throws {
        let message = try #require(SecCopyErrorMessageString(errSecInteractionNotAllowed, nil) as String?)
        #expect(message.contains("is there"))
        #expect(message.contains("locked"))
    }
}
