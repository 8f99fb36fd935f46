// rules: table
// The result codes of Security.framework's SecBase.h: names and numbers.

// swift-format-ignore-file

/// No error.
public let errSecSuccess: OSStatus = 0
/// This function or operation is not implemented.
public let errSecUnimplemented: OSStatus = -4
/// The disk is full.
public let errSecDiskFull: OSStatus = -34
/// Reading or writing failed.
public let errSecIO: OSStatus = -36
/// The file is already open for writing.
public let errSecOpWr: OSStatus = -49
/// A parameter is not valid: a key that is unknown, a value of the wrong type, or keys that do not go together.
public let errSecParam: OSStatus = -50
/// There is no permission to write.
public let errSecWrPerm: OSStatus = -61
/// There is not enough memory.
public let errSecAllocate: OSStatus = -108
/// The user cancelled the operation.
public let errSecUserCanceled: OSStatus = -128
/// The request is not valid for the operation, or not in this state.
public let errSecBadReq: OSStatus = -909
/// A component inside the security module failed.
public let errSecInternalComponent: OSStatus = -2070
/// An error without a name came from Core Foundation.
public let errSecCoreFoundationUnknown: OSStatus = -4960
/// The program holds no access group, or not the one that is named; 'candado keychain entitlements' shows which it
/// holds.
public let errSecMissingEntitlement: OSStatus = -34018
/// The program may not use this function in this way.
public let errSecRestrictedAPI: OSStatus = -34020
/// No keychain can be used now: there is none, its agent does not answer, or a passcode is needed and none is set.
public let errSecNotAvailable: OSStatus = -25291
/// The keychain can be read but not written.
public let errSecReadOnly: OSStatus = -25292
/// Authentication failed: the name or the password is wrong, or a condition of the item was not met.
public let errSecAuthFailed: OSStatus = -25293
/// There is no such keychain.
public let errSecNoSuchKeychain: OSStatus = -25294
/// This is not a keychain.
public let errSecInvalidKeychain: OSStatus = -25295
/// A keychain of that name is there already.
public let errSecDuplicateKeychain: OSStatus = -25296
/// That callback is installed already.
public let errSecDuplicateCallback: OSStatus = -25297
/// There is no such callback.
public let errSecInvalidCallback: OSStatus = -25298
/// An item with the same primary key is in the keychain. The key is account, service, access group and synchronizable
/// for a generic password, and account, security domain, server, protocol, authentication type, port, path, access
/// group and synchronizable for an internet password. Call SecItemUpdate to change the item, or SecItemDelete before
/// SecItemAdd to replace it.
public let errSecDuplicateItem: OSStatus = -25299
/// No item matches the query.
public let errSecItemNotFound: OSStatus = -25300
/// The buffer is too small for the result.
public let errSecBufferTooSmall: OSStatus = -25301
/// The data is larger than an item can hold.
public let errSecDataTooLarge: OSStatus = -25302
/// Items of this class have no such attribute.
public let errSecNoSuchAttr: OSStatus = -25303
/// The reference names no item; the item may have been deleted.
public let errSecInvalidItemRef: OSStatus = -25304
/// The reference names no search.
public let errSecInvalidSearchRef: OSStatus = -25305
/// There is no such class of items.
public let errSecNoSuchClass: OSStatus = -25306
/// There is no default keychain.
public let errSecNoDefaultKeychain: OSStatus = -25307
/// The item is there but cannot be opened now: the keychain is locked, or the user would have to be asked and may not
/// be.
public let errSecInteractionNotAllowed: OSStatus = -25308
/// The attribute cannot be changed.
public let errSecReadOnlyAttr: OSStatus = -25309
/// The keychain was made by another version of the software.
public let errSecWrongSecVersion: OSStatus = -25310
/// Keys of this size are not allowed.
public let errSecKeySizeNotAllowed: OSStatus = -25311
/// The module that stores items is not there.
public let errSecNoStorageModule: OSStatus = -25312
/// The module for certificates is not there.
public let errSecNoCertificateModule: OSStatus = -25313
/// The module for policies is not there.
public let errSecNoPolicyModule: OSStatus = -25314
/// The user has to be asked, which is not possible now.
public let errSecInteractionRequired: OSStatus = -25315
/// The content of the item cannot be had.
public let errSecDataNotAvailable: OSStatus = -25316
/// The content of the item cannot be changed.
public let errSecDataNotModifiable: OSStatus = -25317
/// Certificates that are needed to build the chain are missing.
public let errSecCreateChainFailed: OSStatus = -25318
/// The domain of preferences is not valid.
public let errSecInvalidPrefsDomain: OSStatus = -25319
/// Nothing can be shown, because the system is awake without its screen.
public let errSecInDarkWake: OSStatus = -25320
/// The access control list is not in the simple form.
public let errSecACLNotSimple: OSStatus = -25240
/// There is no such policy.
public let errSecPolicyNotFound: OSStatus = -25241
/// The trust setting is not valid.
public let errSecInvalidTrustSetting: OSStatus = -25242
/// The item has no access control.
public let errSecNoAccessForItem: OSStatus = -25243
/// The owner of the item cannot be changed in this way.
public let errSecInvalidOwnerEdit: OSStatus = -25244
/// There is no result of a trust evaluation.
public let errSecTrustNotAvailable: OSStatus = -25245
/// The format cannot be imported or exported.
public let errSecUnsupportedFormat: OSStatus = -25256
/// The data to import has an unknown format.
public let errSecUnknownFormat: OSStatus = -25257
/// The key may leave only wrapped.
public let errSecKeyIsSensitive: OSStatus = -25258
/// More than one private key would be imported.
public let errSecMultiplePrivKeys: OSStatus = -25259
/// A passphrase is needed to import or export.
public let errSecPassphraseRequired: OSStatus = -25260
/// The reference names no password.
public let errSecInvalidPasswordRef: OSStatus = -25261
/// The record of trust settings is damaged.
public let errSecInvalidTrustSettings: OSStatus = -25262
/// There are no trust settings.
public let errSecNoTrustSettings: OSStatus = -25263
/// The authenticator of the PKCS #12 data does not match; the password may be wrong.
public let errSecPkcs12VerifyFailure: OSStatus = -25264
/// The certificate was not signed by the one that is said to have signed it.
public let errSecNotSigner: OSStatus = -26267
/// The data cannot be decoded.
public let errSecDecode: OSStatus = -26275
/// A service that is needed is not there.
public let errSecServiceNotAvailable: OSStatus = -67585
/// The client is not identified well enough for this operation.
public let errSecInsufficientClientID: OSStatus = -67586
/// The device was reset.
public let errSecDeviceReset: OSStatus = -67587
/// The device failed.
public let errSecDeviceFailed: OSStatus = -67588
/// The application could not be added to the access control list.
public let errSecAppleAddAppACLSubject: OSStatus = -67589
/// The public key is incomplete.
public let errSecApplePublicKeyIncomplete: OSStatus = -67590
/// The signature of the program does not match.
public let errSecAppleSignatureMismatch: OSStatus = -67591
/// The start date of the key is not valid.
public let errSecAppleInvalidKeyStartDate: OSStatus = -67592
/// The end date of the key is not valid.
public let errSecAppleInvalidKeyEndDate: OSStatus = -67593
/// A conversion failed.
public let errSecConversionError: OSStatus = -67594
/// The other side may have been forced back to SSL version 2.
public let errSecAppleSSLv2Rollback: OSStatus = -67595
/// The quota is used up.
public let errSecQuotaExceeded: OSStatus = -67596
/// The file is too large.
public let errSecFileTooBig: OSStatus = -67597
/// The database holds an invalid block of data.
public let errSecInvalidDatabaseBlob: OSStatus = -67598
/// The stored key is not valid.
public let errSecInvalidKeyBlob: OSStatus = -67599
/// The database holds a block of data of another version.
public let errSecIncompatibleDatabaseBlob: OSStatus = -67600
/// The stored key is of another version.
public let errSecIncompatibleKeyBlob: OSStatus = -67601
/// The certificate is for another host name.
public let errSecHostNameMismatch: OSStatus = -67602
/// The certificate has a critical extension with an unknown flag.
public let errSecUnknownCriticalExtensionFlag: OSStatus = -67603
/// The certificate has no basic constraints.
public let errSecNoBasicConstraints: OSStatus = -67604
/// The basic constraints do not say that the certificate is of an authority.
public let errSecNoBasicConstraintsCA: OSStatus = -67605
/// The authority key identifier is not valid.
public let errSecInvalidAuthorityKeyID: OSStatus = -67606
/// The subject key identifier is not valid.
public let errSecInvalidSubjectKeyID: OSStatus = -67607
/// The key usage does not suit the policy.
public let errSecInvalidKeyUsageForPolicy: OSStatus = -67608
/// The extended key usage is not valid.
public let errSecInvalidExtendedKeyUsage: OSStatus = -67609
/// The certificates are linked by wrong identifiers.
public let errSecInvalidIDLinkage: OSStatus = -67610
/// The chain of certificates is longer than is allowed.
public let errSecPathLengthConstraintExceeded: OSStatus = -67611
/// The root certificate is not valid.
public let errSecInvalidRoot: OSStatus = -67612
/// The revocation list has expired.
public let errSecCRLExpired: OSStatus = -67613
/// The revocation list is not valid yet.
public let errSecCRLNotValidYet: OSStatus = -67614
/// The revocation list was not found.
public let errSecCRLNotFound: OSStatus = -67615
/// The server of the revocation list does not answer.
public let errSecCRLServerDown: OSStatus = -67616
/// The address of the revocation list is not valid.
public let errSecCRLBadURI: OSStatus = -67617
/// The certificate has an unknown extension.
public let errSecUnknownCertExtension: OSStatus = -67618
/// The revocation list has an unknown extension.
public let errSecUnknownCRLExtension: OSStatus = -67619
/// The revocation list is not trusted.
public let errSecCRLNotTrusted: OSStatus = -67620
/// The revocation list does not meet the policy.
public let errSecCRLPolicyFailed: OSStatus = -67621
/// The issuing distribution point could not be used.
public let errSecIDPFailure: OSStatus = -67622
/// The e-mail address is not one of the certificate's.
public let errSecSMIMEEmailAddressesNotFound: OSStatus = -67623
/// The extended key usage does not suit mail.
public let errSecSMIMEBadExtendedKeyUsage: OSStatus = -67624
/// The key usage does not suit mail.
public let errSecSMIMEBadKeyUsage: OSStatus = -67625
/// The key usage is not marked as critical.
public let errSecSMIMEKeyUsageNotCritical: OSStatus = -67626
/// The certificate has no e-mail address.
public let errSecSMIMENoEmailAddress: OSStatus = -67627
/// The subject alternative name is not marked as critical.
public let errSecSMIMESubjAltNameNotCritical: OSStatus = -67628
/// The extended key usage does not suit TLS.
public let errSecSSLBadExtendedKeyUsage: OSStatus = -67629
/// The OCSP response is malformed.
public let errSecOCSPBadResponse: OSStatus = -67630
/// The OCSP request is malformed.
public let errSecOCSPBadRequest: OSStatus = -67631
/// The OCSP service does not answer.
public let errSecOCSPUnavailable: OSStatus = -67632
/// The OCSP server does not know the certificate.
public let errSecOCSPStatusUnrecognized: OSStatus = -67633
/// The data ended too early.
public let errSecEndOfData: OSStatus = -67634
/// The check of revocation could not be completed.
public let errSecIncompleteCertRevocationCheck: OSStatus = -67635
/// The network failed.
public let errSecNetworkFailure: OSStatus = -67636
/// The OCSP response is not trusted up to an anchor.
public let errSecOCSPNotTrustedToAnchor: OSStatus = -67637
/// The record was changed meanwhile.
public let errSecRecordModified: OSStatus = -67638
/// The signature of the OCSP response is not valid.
public let errSecOCSPSignatureError: OSStatus = -67639
/// The OCSP response has no signer.
public let errSecOCSPNoSigner: OSStatus = -67640
/// The OCSP responder takes the request for malformed.
public let errSecOCSPResponderMalformedReq: OSStatus = -67641
/// The OCSP responder has an internal error.
public let errSecOCSPResponderInternalError: OSStatus = -67642
/// The OCSP responder is busy and asks to try again later.
public let errSecOCSPResponderTryLater: OSStatus = -67643
/// The OCSP responder wants a signed request.
public let errSecOCSPResponderSignatureRequired: OSStatus = -67644
/// The OCSP responder refused the request as unauthorized.
public let errSecOCSPResponderUnauthorized: OSStatus = -67645
/// The nonce of the OCSP response is not that of the request.
public let errSecOCSPResponseNonceMismatch: OSStatus = -67646
/// The chain of the signer of the code has a wrong length.
public let errSecCodeSigningBadCertChainLength: OSStatus = -67647
/// The signer of the code has no basic constraints.
public let errSecCodeSigningNoBasicConstraints: OSStatus = -67648
/// The signer of the code has a wrong path length constraint.
public let errSecCodeSigningBadPathLengthConstraint: OSStatus = -67649
/// The signer of the code has no extended key usage.
public let errSecCodeSigningNoExtendedKeyUsage: OSStatus = -67650
/// The code was signed with a certificate for development only.
public let errSecCodeSigningDevelopment: OSStatus = -67651
/// The chain of the signer of the resources has a wrong length.
public let errSecResourceSignBadCertChainLength: OSStatus = -67652
/// The extended key usage does not suit the signing of resources.
public let errSecResourceSignBadExtKeyUsage: OSStatus = -67653
/// The trust settings deny this certificate.
public let errSecTrustSettingDeny: OSStatus = -67654
/// The subject of the certificate is empty or not valid.
public let errSecInvalidSubjectName: OSStatus = -67655
/// The certificate has an unknown statement of a qualified certificate.
public let errSecUnknownQualifiedCertStatement: OSStatus = -67656
/// The request to MobileMe is queued.
public let errSecMobileMeRequestQueued: OSStatus = -67657
/// The request to MobileMe was redirected.
public let errSecMobileMeRequestRedirected: OSStatus = -67658
/// The MobileMe server had an error.
public let errSecMobileMeServerError: OSStatus = -67659
/// The MobileMe server does not answer.
public let errSecMobileMeServerNotAvailable: OSStatus = -67660
/// The item is on the MobileMe server already.
public let errSecMobileMeServerAlreadyExists: OSStatus = -67661
/// A service of the MobileMe server failed.
public let errSecMobileMeServerServiceErr: OSStatus = -67662
/// A request to MobileMe is pending already.
public let errSecMobileMeRequestAlreadyPending: OSStatus = -67663
/// No request to MobileMe is pending.
public let errSecMobileMeNoRequestPending: OSStatus = -67664
/// MobileMe could not verify the certificate request.
public let errSecMobileMeCSRVerifyFailure: OSStatus = -67665
/// MobileMe found a contradiction.
public let errSecMobileMeFailedConsistencyCheck: OSStatus = -67666
/// The module is used before it was initialized.
public let errSecNotInitialized: OSStatus = -67667
/// The handle cannot be used in this way.
public let errSecInvalidHandleUsage: OSStatus = -67668
/// The caller of a pointer check was not found.
public let errSecPVCReferentNotFound: OSStatus = -67669
/// A function is not what it should be.
public let errSecFunctionIntegrityFail: OSStatus = -67670
/// An error inside the module.
public let errSecInternalError: OSStatus = -67671
/// An error of memory.
public let errSecMemoryError: OSStatus = -67672
/// The data is not valid.
public let errSecInvalidData: OSStatus = -67673
/// The module directory had an error.
public let errSecMDSError: OSStatus = -67674
/// The pointer is not valid.
public let errSecInvalidPointer: OSStatus = -67675
/// The module's check of itself failed.
public let errSecSelfCheckFailed: OSStatus = -67676
/// The function failed.
public let errSecFunctionFailed: OSStatus = -67677
/// The manifest of a module does not verify.
public let errSecModuleManifestVerifyFailed: OSStatus = -67678
/// The unique identifier is not valid.
public let errSecInvalidGUID: OSStatus = -67679
/// The handle is not valid.
public let errSecInvalidHandle: OSStatus = -67680
/// The list of databases is not valid.
public let errSecInvalidDBList: OSStatus = -67681
/// The identifier of a pass-through function is not valid.
public let errSecInvalidPassthroughID: OSStatus = -67682
/// The network address is not valid.
public let errSecInvalidNetworkAddress: OSStatus = -67683
/// The revocation list is signed already.
public let errSecCRLAlreadySigned: OSStatus = -67684
/// The number of fields is not valid.
public let errSecInvalidNumberOfFields: OSStatus = -67685
/// Verification failed.
public let errSecVerificationFailure: OSStatus = -67686
/// The tag is unknown.
public let errSecUnknownTag: OSStatus = -67687
/// The signature is not valid.
public let errSecInvalidSignature: OSStatus = -67688
/// The name is not valid.
public let errSecInvalidName: OSStatus = -67689
/// The reference names no certificate.
public let errSecInvalidCertificateRef: OSStatus = -67690
/// The group of certificates is not valid.
public let errSecInvalidCertificateGroup: OSStatus = -67691
/// The tag was not found.
public let errSecTagNotFound: OSStatus = -67692
/// The query is not valid.
public let errSecInvalidQuery: OSStatus = -67693
/// The value is not valid.
public let errSecInvalidValue: OSStatus = -67694
/// A callback failed.
public let errSecCallbackFailed: OSStatus = -67695
/// An entry of the access control list could not be deleted.
public let errSecACLDeleteFailed: OSStatus = -67696
/// An entry of the access control list could not be replaced.
public let errSecACLReplaceFailed: OSStatus = -67697
/// An entry could not be added to the access control list.
public let errSecACLAddFailed: OSStatus = -67698
/// The access control list could not be changed.
public let errSecACLChangeFailed: OSStatus = -67699
/// The credentials for access are not valid.
public let errSecInvalidAccessCredentials: OSStatus = -67700
/// The record is not valid.
public let errSecInvalidRecord: OSStatus = -67701
/// The access control list is not valid.
public let errSecInvalidACL: OSStatus = -67702
/// The sample of a credential is not valid.
public let errSecInvalidSampleValue: OSStatus = -67703
/// The version does not fit.
public let errSecIncompatibleVersion: OSStatus = -67704
/// The privilege was not granted.
public let errSecPrivilegeNotGranted: OSStatus = -67705
/// The scope is not valid.
public let errSecInvalidScope: OSStatus = -67706
/// The check of pointers is configured already.
public let errSecPVCAlreadyConfigured: OSStatus = -67707
/// The check of pointers is not valid.
public let errSecInvalidPVC: OSStatus = -67708
/// The manager of elective modules could not be loaded.
public let errSecEMMLoadFailed: OSStatus = -67709
/// The manager of elective modules could not be unloaded.
public let errSecEMMUnloadFailed: OSStatus = -67710
/// The module could not be loaded.
public let errSecAddinLoadFailed: OSStatus = -67711
/// The reference names no key.
public let errSecInvalidKeyRef: OSStatus = -67712
/// The hierarchy of keys is not valid.
public let errSecInvalidKeyHierarchy: OSStatus = -67713
/// The module could not be unloaded.
public let errSecAddinUnloadFailed: OSStatus = -67714
/// The reference of a library was not found.
public let errSecLibraryReferenceNotFound: OSStatus = -67715
/// The table of functions of a module is not valid.
public let errSecInvalidAddinFunctionTable: OSStatus = -67716
/// The mask of services is not valid.
public let errSecInvalidServiceMask: OSStatus = -67717
/// The module is not loaded.
public let errSecModuleNotLoaded: OSStatus = -67718
/// The identifier of a part of a service is not valid.
public let errSecInvalidSubServiceID: OSStatus = -67719
/// The context has no such attribute.
public let errSecAttributeNotInContext: OSStatus = -67720
/// The manager of modules could not be initialized.
public let errSecModuleManagerInitializeFailed: OSStatus = -67721
/// The manager of modules was not found.
public let errSecModuleManagerNotFound: OSStatus = -67722
/// The callback for events was not found.
public let errSecEventNotificationCallbackNotFound: OSStatus = -67723
/// The input has a wrong length.
public let errSecInputLengthError: OSStatus = -67724
/// The output has a wrong length.
public let errSecOutputLengthError: OSStatus = -67725
/// The privilege is not supported.
public let errSecPrivilegeNotSupported: OSStatus = -67726
/// The device had an error.
public let errSecDeviceError: OSStatus = -67727
/// The handle of the module is busy.
public let errSecAttachHandleBusy: OSStatus = -67728
/// Nobody is logged in.
public let errSecNotLoggedIn: OSStatus = -67729
/// The algorithms do not match.
public let errSecAlgorithmMismatch: OSStatus = -67730
/// The key may not be used for this.
public let errSecKeyUsageIncorrect: OSStatus = -67731
/// The stored key is of a wrong kind.
public let errSecKeyBlobTypeIncorrect: OSStatus = -67732
/// The header of the key contradicts itself.
public let errSecKeyHeaderInconsistent: OSStatus = -67733
/// The format of the key is not supported.
public let errSecUnsupportedKeyFormat: OSStatus = -67734
/// The size of the key is not supported.
public let errSecUnsupportedKeySize: OSStatus = -67735
/// The usages of the key are not valid.
public let errSecInvalidKeyUsageMask: OSStatus = -67736
/// The usages of the key are not supported.
public let errSecUnsupportedKeyUsageMask: OSStatus = -67737
/// The attributes of the key are not valid.
public let errSecInvalidKeyAttributeMask: OSStatus = -67738
/// The attributes of the key are not supported.
public let errSecUnsupportedKeyAttributeMask: OSStatus = -67739
/// The label of the key is not valid.
public let errSecInvalidKeyLabel: OSStatus = -67740
/// The label of the key is not supported.
public let errSecUnsupportedKeyLabel: OSStatus = -67741
/// The format of the key is not valid.
public let errSecInvalidKeyFormat: OSStatus = -67742
/// A list of buffers is not supported.
public let errSecUnsupportedVectorOfBuffers: OSStatus = -67743
/// The list of input buffers is not valid.
public let errSecInvalidInputVector: OSStatus = -67744
/// The list of output buffers is not valid.
public let errSecInvalidOutputVector: OSStatus = -67745
/// The context is not valid.
public let errSecInvalidContext: OSStatus = -67746
/// The algorithm is not valid.
public let errSecInvalidAlgorithm: OSStatus = -67747
/// The key is not valid.
public let errSecInvalidAttributeKey: OSStatus = -67748
/// The key is missing.
public let errSecMissingAttributeKey: OSStatus = -67749
/// The initialization vector is not valid.
public let errSecInvalidAttributeInitVector: OSStatus = -67750
/// The initialization vector is missing.
public let errSecMissingAttributeInitVector: OSStatus = -67751
/// The salt is not valid.
public let errSecInvalidAttributeSalt: OSStatus = -67752
/// The salt is missing.
public let errSecMissingAttributeSalt: OSStatus = -67753
/// The padding is not valid.
public let errSecInvalidAttributePadding: OSStatus = -67754
/// The padding is missing.
public let errSecMissingAttributePadding: OSStatus = -67755
/// The random number is not valid.
public let errSecInvalidAttributeRandom: OSStatus = -67756
/// The random number is missing.
public let errSecMissingAttributeRandom: OSStatus = -67757
/// The seed is not valid.
public let errSecInvalidAttributeSeed: OSStatus = -67758
/// The seed is missing.
public let errSecMissingAttributeSeed: OSStatus = -67759
/// The passphrase is not valid.
public let errSecInvalidAttributePassphrase: OSStatus = -67760
/// The passphrase is missing.
public let errSecMissingAttributePassphrase: OSStatus = -67761
/// The key length is not valid.
public let errSecInvalidAttributeKeyLength: OSStatus = -67762
/// The key length is missing.
public let errSecMissingAttributeKeyLength: OSStatus = -67763
/// The block size is not valid.
public let errSecInvalidAttributeBlockSize: OSStatus = -67764
/// The block size is missing.
public let errSecMissingAttributeBlockSize: OSStatus = -67765
/// The output size is not valid.
public let errSecInvalidAttributeOutputSize: OSStatus = -67766
/// The output size is missing.
public let errSecMissingAttributeOutputSize: OSStatus = -67767
/// The number of rounds is not valid.
public let errSecInvalidAttributeRounds: OSStatus = -67768
/// The number of rounds is missing.
public let errSecMissingAttributeRounds: OSStatus = -67769
/// The parameters of the algorithm are not valid.
public let errSecInvalidAlgorithmParms: OSStatus = -67770
/// The parameters of the algorithm are missing.
public let errSecMissingAlgorithmParms: OSStatus = -67771
/// The label is not valid.
public let errSecInvalidAttributeLabel: OSStatus = -67772
/// The label is missing.
public let errSecMissingAttributeLabel: OSStatus = -67773
/// The key type is not valid.
public let errSecInvalidAttributeKeyType: OSStatus = -67774
/// The key type is missing.
public let errSecMissingAttributeKeyType: OSStatus = -67775
/// The mode is not valid.
public let errSecInvalidAttributeMode: OSStatus = -67776
/// The mode is missing.
public let errSecMissingAttributeMode: OSStatus = -67777
/// The number of effective bits is not valid.
public let errSecInvalidAttributeEffectiveBits: OSStatus = -67778
/// The number of effective bits is missing.
public let errSecMissingAttributeEffectiveBits: OSStatus = -67779
/// The start date is not valid.
public let errSecInvalidAttributeStartDate: OSStatus = -67780
/// The start date is missing.
public let errSecMissingAttributeStartDate: OSStatus = -67781
/// The end date is not valid.
public let errSecInvalidAttributeEndDate: OSStatus = -67782
/// The end date is missing.
public let errSecMissingAttributeEndDate: OSStatus = -67783
/// The version is not valid.
public let errSecInvalidAttributeVersion: OSStatus = -67784
/// The version is missing.
public let errSecMissingAttributeVersion: OSStatus = -67785
/// The prime is not valid.
public let errSecInvalidAttributePrime: OSStatus = -67786
/// The prime is missing.
public let errSecMissingAttributePrime: OSStatus = -67787
/// The base is not valid.
public let errSecInvalidAttributeBase: OSStatus = -67788
/// The base is missing.
public let errSecMissingAttributeBase: OSStatus = -67789
/// The subprime is not valid.
public let errSecInvalidAttributeSubprime: OSStatus = -67790
/// The subprime is missing.
public let errSecMissingAttributeSubprime: OSStatus = -67791
/// The iteration count is not valid.
public let errSecInvalidAttributeIterationCount: OSStatus = -67792
/// The iteration count is missing.
public let errSecMissingAttributeIterationCount: OSStatus = -67793
/// The database handle is not valid.
public let errSecInvalidAttributeDLDBHandle: OSStatus = -67794
/// The database handle is missing.
public let errSecMissingAttributeDLDBHandle: OSStatus = -67795
/// The credential for access is not valid.
public let errSecInvalidAttributeAccessCredentials: OSStatus = -67796
/// The credential for access is missing.
public let errSecMissingAttributeAccessCredentials: OSStatus = -67797
/// The public key format is not valid.
public let errSecInvalidAttributePublicKeyFormat: OSStatus = -67798
/// The public key format is missing.
public let errSecMissingAttributePublicKeyFormat: OSStatus = -67799
/// The private key format is not valid.
public let errSecInvalidAttributePrivateKeyFormat: OSStatus = -67800
/// The private key format is missing.
public let errSecMissingAttributePrivateKeyFormat: OSStatus = -67801
/// The symmetric key format is not valid.
public let errSecInvalidAttributeSymmetricKeyFormat: OSStatus = -67802
/// The symmetric key format is missing.
public let errSecMissingAttributeSymmetricKeyFormat: OSStatus = -67803
/// The wrapped key format is not valid.
public let errSecInvalidAttributeWrappedKeyFormat: OSStatus = -67804
/// The wrapped key format is missing.
public let errSecMissingAttributeWrappedKeyFormat: OSStatus = -67805
/// An operation in stages is under way.
public let errSecStagedOperationInProgress: OSStatus = -67806
/// The operation in stages was not begun.
public let errSecStagedOperationNotStarted: OSStatus = -67807
/// The signature does not match.
public let errSecVerifyFailed: OSStatus = -67808
/// The size of the result is not known.
public let errSecQuerySizeUnknown: OSStatus = -67809
/// The size of the blocks does not match.
public let errSecBlockSizeMismatch: OSStatus = -67810
/// The public key contradicts itself.
public let errSecPublicKeyInconsistent: OSStatus = -67811
/// The device could not be verified.
public let errSecDeviceVerifyFailed: OSStatus = -67812
/// The name to log in with is not valid.
public let errSecInvalidLoginName: OSStatus = -67813
/// Somebody is logged in already.
public let errSecAlreadyLoggedIn: OSStatus = -67814
/// The digest algorithm is not valid.
public let errSecInvalidDigestAlgorithm: OSStatus = -67815
/// The group of revocation lists is not valid.
public let errSecInvalidCRLGroup: OSStatus = -67816
/// The certificate cannot be used for this.
public let errSecCertificateCannotOperate: OSStatus = -67817
/// The certificate has expired.
public let errSecCertificateExpired: OSStatus = -67818
/// The certificate is not valid yet.
public let errSecCertificateNotValidYet: OSStatus = -67819
/// The certificate was revoked.
public let errSecCertificateRevoked: OSStatus = -67820
/// The certificate is suspended.
public let errSecCertificateSuspended: OSStatus = -67821
/// The credentials are not sufficient.
public let errSecInsufficientCredentials: OSStatus = -67822
/// The action is not valid.
public let errSecInvalidAction: OSStatus = -67823
/// The authority is not valid.
public let errSecInvalidAuthority: OSStatus = -67824
/// The action of verifying failed.
public let errSecVerifyActionFailed: OSStatus = -67825
/// The certificate authority is not valid.
public let errSecInvalidCertAuthority: OSStatus = -67826
/// The authority of the revocation list is not valid.
public let errSecInvalidCRLAuthority: OSStatus = -67827
/// The encoding of the revocation list is not valid.
public let errSecInvalidCRLEncoding: OSStatus = -67828
/// The kind of revocation list is not valid.
public let errSecInvalidCRLType: OSStatus = -67829
/// The revocation list is not valid.
public let errSecInvalidCRL: OSStatus = -67830
/// The kind of form is not valid.
public let errSecInvalidFormType: OSStatus = -67831
/// The identity is not valid.
public let errSecInvalidID: OSStatus = -67832
/// The identifier is not valid.
public let errSecInvalidIdentifier: OSStatus = -67833
/// The index is not valid.
public let errSecInvalidIndex: OSStatus = -67834
/// The identifiers of policies are not valid.
public let errSecInvalidPolicyIdentifiers: OSStatus = -67835
/// The text of a time is not valid.
public let errSecInvalidTimeString: OSStatus = -67836
/// The reason is not valid.
public let errSecInvalidReason: OSStatus = -67837
/// The inputs of the request are not valid.
public let errSecInvalidRequestInputs: OSStatus = -67838
/// The list of responses is not valid.
public let errSecInvalidResponseVector: OSStatus = -67839
/// The policy to stop at is not valid.
public let errSecInvalidStopOnPolicy: OSStatus = -67840
/// The tuple is not valid.
public let errSecInvalidTuple: OSStatus = -67841
/// More than one value is not supported.
public let errSecMultipleValuesUnsupported: OSStatus = -67842
/// The certificate is not trusted.
public let errSecNotTrusted: OSStatus = -67843
/// There is no default authority.
public let errSecNoDefaultAuthority: OSStatus = -67844
/// The form was rejected.
public let errSecRejectedForm: OSStatus = -67845
/// The request was lost.
public let errSecRequestLost: OSStatus = -67846
/// The request was rejected.
public let errSecRequestRejected: OSStatus = -67847
/// The kind of address is not supported.
public let errSecUnsupportedAddressType: OSStatus = -67848
/// The service is not supported.
public let errSecUnsupportedService: OSStatus = -67849
/// The group of tuples is not valid.
public let errSecInvalidTupleGroup: OSStatus = -67850
/// The base access control lists are not valid.
public let errSecInvalidBaseACLs: OSStatus = -67851
/// The credentials of the tuple are not valid.
public let errSecInvalidTupleCredentials: OSStatus = -67852
/// The encoding is not valid.
public let errSecInvalidEncoding: OSStatus = -67853
/// The period of validity is not valid.
public let errSecInvalidValidityPeriod: OSStatus = -67854
/// Who makes the request is not valid.
public let errSecInvalidRequestor: OSStatus = -67855
/// The description of the request is not valid.
public let errSecRequestDescriptor: OSStatus = -67856
/// The information of the bundle is not valid.
public let errSecInvalidBundleInfo: OSStatus = -67857
/// The index of the revocation list is not valid.
public let errSecInvalidCRLIndex: OSStatus = -67858
/// There are no values of fields.
public let errSecNoFieldValues: OSStatus = -67859
/// The format of the field is not supported.
public let errSecUnsupportedFieldFormat: OSStatus = -67860
/// The information of the index is not supported.
public let errSecUnsupportedIndexInfo: OSStatus = -67861
/// The locality is not supported.
public let errSecUnsupportedLocality: OSStatus = -67862
/// This number of attributes is not supported.
public let errSecUnsupportedNumAttributes: OSStatus = -67863
/// This number of indexes is not supported.
public let errSecUnsupportedNumIndexes: OSStatus = -67864
/// This number of kinds of records is not supported.
public let errSecUnsupportedNumRecordTypes: OSStatus = -67865
/// A field was given more than once.
public let errSecFieldSpecifiedMultiple: OSStatus = -67866
/// The formats of fields do not fit.
public let errSecIncompatibleFieldFormat: OSStatus = -67867
/// The module that parses is not valid.
public let errSecInvalidParsingModule: OSStatus = -67868
/// The database is locked.
public let errSecDatabaseLocked: OSStatus = -67869
/// The store of data is open.
public let errSecDatastoreIsOpen: OSStatus = -67870
/// A value is missing.
public let errSecMissingValue: OSStatus = -67871
/// The limits of the query are not supported.
public let errSecUnsupportedQueryLimits: OSStatus = -67872
/// This number of conditions is not supported.
public let errSecUnsupportedNumSelectionPreds: OSStatus = -67873
/// The operator is not supported.
public let errSecUnsupportedOperator: OSStatus = -67874
/// The place of the database is not valid.
public let errSecInvalidDBLocation: OSStatus = -67875
/// The request for access is not valid.
public let errSecInvalidAccessRequest: OSStatus = -67876
/// The information of the index is not valid.
public let errSecInvalidIndexInfo: OSStatus = -67877
/// The new owner is not valid.
public let errSecInvalidNewOwner: OSStatus = -67878
/// The way to modify is not valid.
public let errSecInvalidModifyMode: OSStatus = -67879
/// An extension that is required is missing.
public let errSecMissingRequiredExtension: OSStatus = -67880
/// The extended key usage is not marked as critical.
public let errSecExtendedKeyUsageNotCritical: OSStatus = -67881
/// A timestamp was expected and is missing.
public let errSecTimestampMissing: OSStatus = -67882
/// The timestamp is not valid.
public let errSecTimestampInvalid: OSStatus = -67883
/// The timestamp is not trusted.
public let errSecTimestampNotTrusted: OSStatus = -67884
/// The timestamp service does not answer.
public let errSecTimestampServiceNotAvailable: OSStatus = -67885
/// The timestamp has an unknown or unsupported algorithm.
public let errSecTimestampBadAlg: OSStatus = -67886
/// The timestamp request is not allowed.
public let errSecTimestampBadRequest: OSStatus = -67887
/// The timestamp request has a wrong format.
public let errSecTimestampBadDataFormat: OSStatus = -67888
/// The source of time of the timestamp authority does not answer.
public let errSecTimestampTimeNotAvailable: OSStatus = -67889
/// The timestamp authority does not accept the policy.
public let errSecTimestampUnacceptedPolicy: OSStatus = -67890
/// The timestamp authority does not accept an extension.
public let errSecTimestampUnacceptedExtension: OSStatus = -67891
/// The timestamp authority cannot give the further information.
public let errSecTimestampAddInfoNotAvailable: OSStatus = -67892
/// The timestamp authority failed.
public let errSecTimestampSystemFailure: OSStatus = -67893
/// The time of signing is missing.
public let errSecSigningTimeMissing: OSStatus = -67894
/// The timestamp request was rejected.
public let errSecTimestampRejection: OSStatus = -67895
/// The timestamp request waits.
public let errSecTimestampWaiting: OSStatus = -67896
/// The certificate of the timestamp authority will soon be revoked.
public let errSecTimestampRevocationWarning: OSStatus = -67897
/// The certificate of the timestamp authority was revoked.
public let errSecTimestampRevocationNotification: OSStatus = -67898
/// The policy of the certificate is not allowed.
public let errSecCertificatePolicyNotAllowed: OSStatus = -67899
/// The name of the certificate is not allowed.
public let errSecCertificateNameNotAllowed: OSStatus = -67900
/// The certificate is valid for too long.
public let errSecCertificateValidityPeriodTooLong: OSStatus = -67901
/// The certificate is of an authority, where none may be.
public let errSecCertificateIsCA: OSStatus = -67902
/// The certificate has an extension twice.
public let errSecCertificateDuplicateExtension: OSStatus = -67903
/// The certificate lacks a statement of a qualified certificate.
public let errSecMissingQualifiedCertStatement: OSStatus = -67904

/// Apple's older spelling of ``errSecDiskFull``.
public let errSecDskFull: OSStatus = errSecDiskFull
/// Apple's older spelling of ``errSecInvalidCRLAuthority``.
public let errSecInvaldCRLAuthority: OSStatus = errSecInvalidCRLAuthority
/// Apple's older spelling of ``errSecInvalidTupleCredentials``.
public let errSecInvalidTupleCredendtials: OSStatus = errSecInvalidTupleCredentials
