import LinuxSystem
import ProtectionModel
import SecretMemory
import TestSupport
import Testing

@testable import Keybag

@Suite struct ClassKeyServiceTests {
    @Test func theKeybagObeysTheStateMatrix() throws {
        let findings = try ClassKeyServiceSuite.run { try KeybagHarness() }
        #expect(findings.isEmpty, "\(findings.joined(separator: "\n"))")
    }

    /// The suite itself must be able to fail.
    @Test func theSuiteFindsAServiceThatDoesNotLock() throws {
        struct Deaf: ClassKeyServiceHarness {
            let inner: KeybagHarness
            var service: any ClassKeyService { inner.keybag }
            func unlock() throws { try inner.unlock() }
            func lock() throws {}
        }
        let findings = try ClassKeyServiceSuite.run { Deaf(inner: try KeybagHarness()) }
        #expect(findings.count > 10)
    }

    @Test func recoveredKeysOpenEverythingAndAreNeverLocked() throws {
        let fixture = try KeybagFixture()
        let recoveryKey = try RecoveryKey.generate()
        let keybag = try fixture.create(recoveryKey: try recoveryKey.copy())
        let records = try ProtectionClass.allCases.map { try keybag.makeFileKey(for: $0, flags: []).record }
        let capsule = try #require(try keybag.recoveryCapsule())
        let recovered = try Keybag.recover(capsule: capsule, recoveryKey: recoveryKey)
        #expect(recovered.lockState == .unlocked)
        #expect(recovered.keybagIdentifier == keybag.keybagIdentifier)
        for record in records {
            let lease = try recovered.unwrap(record)
            let original = try keybag.unwrap(record)
            #expect(try lease.withKey { one in try original.withKey { two in one.bytes.equals(two.bytes) } })
            for target in ProtectionClass.allCases {
                let changed = try recovered.rewrap(record, to: target, flags: [.keyWasWeaker])
                #expect(changed.protectionClass == target)
                _ = try keybag.unwrap(changed)
            }
        }
        for protectionClass in ProtectionClass.allCases {
            _ = try keybag.unwrap(try recovered.makeFileKey(for: protectionClass, flags: []).record)
        }
    }
}
