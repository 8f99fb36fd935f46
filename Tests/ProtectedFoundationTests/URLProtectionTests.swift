import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct URLProtectionTests {
    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func classAndLengthAreToldInEveryState(_ state: LockState, _ protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", protectionClass)
        try fixture.run(state) {
            let keys: Set<URLResourceKey> = [.fileProtectionKey, .fileSizeKey, .totalFileSizeKey, .isRegularFileKey]
            let values = try fixture.url("a").resourceValues(forKeys: keys)
            #expect(values.fileProtection == URLFileProtection(protectionClass))
            #expect(values.fileSize == FilesFixture.content.count)
            #expect(values.totalFileSize == FilesFixture.content.count)
            #expect(values.isRegularFile == true)
            #expect(values.quarantineProperties == nil)
            #expect(Set(values.allValues.keys) == keys)
            #expect(values.allValues[.fileSizeKey] as? Int == FilesFixture.content.count)
            #expect(values.allValues[.fileProtectionKey] as? URLFileProtection == URLFileProtection(protectionClass))
            let other = try (fixture.url("a") as NSURL).resourceValues(forKeys: [.fileProtectionKey, .fileSizeKey])
            #expect(other[.fileProtectionKey] as? URLFileProtection == URLFileProtection(protectionClass))
            #expect(other[.fileSizeKey] as? Int == FilesFixture.content.count)
        }
    }

    @Test func rawValuesAreApples() {
        #expect(
            ProtectionClass.allCases.map { URLFileProtection($0).rawValue } == [
                "NSURLFileProtectionComplete", "NSURLFileProtectionCompleteUnlessOpen",
                "NSURLFileProtectionCompleteUntilFirstUserAuthentication", "NSURLFileProtectionNone",
            ])
        #expect(URLResourceKey.fileProtectionKey.rawValue == "NSURLFileProtectionKey")
    }

    @Test func whatWasNotAskedForIsNil() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        let values = try fixture.url("a").resourceValues(forKeys: [.isRegularFileKey])
        #expect(values.fileProtection == nil)
        #expect(values.fileSize == nil)
        #expect(Array(values.allValues.keys) == [.isRegularFileKey])
    }

    @Test func aPlainFileHasNoClassAndADirectoryItsOwn() throws {
        let fixture = try FilesFixture()
        try fixture.write("plain")
        try fixture.makeDirectory("d", .complete)
        let keys: Set<URLResourceKey> = [.fileProtectionKey, .fileSizeKey]
        let values = try fixture.url("plain").resourceValues(forKeys: keys)
        #expect(values.fileProtection == nil)
        #expect(values.fileSize == FilesFixture.content.count)
        #expect(try fixture.url("d").resourceValues(forKeys: keys).fileProtection == .complete)
        let missing = thrownBy { try fixture.url("none").resourceValues(forKeys: [.fileProtectionKey]) }
        #expect(missing == FilesFailure(code: 260, beneath: 2))
    }

    @Test(arguments: LockState.allCases, ProtectionClass.allCases)
    func theClassIsSetByTheStateMatrix(_ state: LockState, _ from: ProtectionClass) throws {
        for wanted in ProtectionClass.allCases {
            let fixture = try FilesFixture()
            try fixture.protect("a", from)
            try fixture.run(state) {
                let url = fixture.url("a")
                let found = thrownBy {
                    try (url as NSURL).setResourceValue(URLFileProtection(wanted), forKey: .fileProtectionKey)
                }
                let can = FileManagerAttributesTests.canChange(from, to: wanted, state)
                #expect(found == (can ? nil : .lockedWriting))
                let present = try url.resourceValues(forKeys: [.fileProtectionKey]).fileProtection
                #expect(present == URLFileProtection(can ? wanted : from))
            }
        }
    }

    @Test func aClassIsSetByItsRawValueAndAnUnknownOneIsAnError() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.run {
            let url = fixture.url("a") as NSURL
            for value in ["NSURLFileProtectionCompleteWhenUserInactive", 3, nil] as [Any?] {
                let found = thrownBy { try url.setResourceValue(value, forKey: .fileProtectionKey) }
                #expect(found?.code == 512)
            }
            #expect(fixture.bytes("a") == FilesFixture.content)
            try url.setResourceValues([.fileProtectionKey: "NSURLFileProtectionComplete"])
            var value: AnyObject?
            try url.getResourceValue(&value, forKey: .fileProtectionKey)
            #expect(value as? String == "NSURLFileProtectionComplete")
        }
        #expect(try fixture.protectionClass("a") == .complete)
        #expect(try fixture.holdsNothingPlain())
    }

    @Test func valuesThatWereReadCanBeSetAgain() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        var url = fixture.url("a")
        let values = try url.resourceValues(forKeys: [.fileProtectionKey, .fileSizeKey])
        let before = fixture.bytes("a")
        try url.setResourceValues(values)
        #expect(fixture.bytes("a") == before)
    }
}
