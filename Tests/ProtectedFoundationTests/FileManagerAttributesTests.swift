import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

@Suite struct FileManagerAttributesTests {
    static let classes = ProtectionClass.allCases
    private let manager = FileManager.default

    /// Whether a file of one class can be given another, by the state matrix.
    static func canChange(_ from: ProtectionClass, to wanted: ProtectionClass, _ state: LockState) -> Bool {
        if state == .unlocked { return true }
        let isAfterFirst = state == .locked
        let opens =
            switch from {
            case .complete, .completeUnlessOpen: false
            case .completeUntilFirstUserAuthentication: isAfterFirst
            case .none: true
            }
        let wraps =
            switch wanted {
            case .complete: false
            case .completeUnlessOpen, .none: true
            case .completeUntilFirstUserAuthentication: isAfterFirst
            }
        return opens && (wraps || from == wanted)
    }

    @Test(arguments: LockState.allCases, classes)
    func theClassOfAFileChangesByTheStateMatrix(_ state: LockState, _ from: ProtectionClass) throws {
        for wanted in Self.classes {
            let fixture = try FilesFixture()
            try fixture.protect("a", from)
            let before = fixture.bytes("a")
            try fixture.run(state) {
                let found = thrownBy {
                    try manager.setAttributes(
                        [.protectionKey: wanted.fileProtectionType, .posixPermissions: 0o640],
                        ofItemAtPath: fixture.path("a"))
                }
                let present = try manager.attributesOfItem(atPath: fixture.path("a"))
                if Self.canChange(from, to: wanted, state) {
                    #expect(found == nil, "\(from) to \(wanted) \(state)")
                    #expect(present[.protectionKey] as? FileProtectionType == wanted.fileProtectionType)
                    #expect(present[.posixPermissions] as? Int == 0o640)
                } else {
                    #expect(found == .lockedReading, "\(from) to \(wanted) \(state)")
                    #expect(present[.protectionKey] as? FileProtectionType == from.fileProtectionType)
                    #expect(present[.posixPermissions] as? Int == 0o600, "the class comes first")
                    #expect(fixture.bytes("a") == before)
                }
            }
        }
    }

    @Test(arguments: classes) func aPlainFileIsProtectedWhereItLies(_ wanted: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.run {
            try manager.setAttributes(
                [.protectionKey: wanted.fileProtectionType.rawValue], ofItemAtPath: fixture.path("a"))
        }
        #expect(try fixture.protectionClass("a") == wanted)
        #expect(try fixture.content("a") == FilesFixture.content)
        #expect(try fixture.holdsNothingPlain())
        #expect(try fixture.names() == ["a"])
    }

    @Test func aPlainFileStaysAsItIsWhenTheClassIsLocked() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        try fixture.run(.locked) {
            let found = thrownBy {
                try manager.setAttributes(
                    [.protectionKey: FileProtectionType.complete], ofItemAtPath: fixture.path("a"))
            }
            #expect(found == .lockedReading)
        }
        #expect(fixture.bytes("a") == FilesFixture.content)
    }

    @Test(arguments: LockState.allCases) func aDirectoryTakesAClassInEveryState(_ state: LockState) throws {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d")
        try fixture.run(state) {
            for wanted in Self.classes {
                try manager.setAttributes(
                    [.protectionKey: wanted.fileProtectionType], ofItemAtPath: fixture.path("d"))
                let present = try manager.attributesOfItem(atPath: fixture.path("d"))[.protectionKey]
                #expect(present as? FileProtectionType == wanted.fileProtectionType)
            }
        }
    }

    @Test func aClassThatIsNotKnownIsAnError() throws {
        let fixture = try FilesFixture()
        try fixture.write("a")
        let unknown: [Any] = [
            FileProtectionType(rawValue: "NSFileProtectionCompleteWhenUserInactive"), "complete", 3, NSNull(),
        ]
        fixture.run {
            for value in unknown {
                #expect(
                    thrownBy { try manager.setAttributes([.protectionKey: value], ofItemAtPath: fixture.path("a")) }?
                        .code
                        == 256, "\(value)")
                #expect(
                    !manager.createFile(atPath: fixture.path("b"), contents: nil, attributes: [.protectionKey: value]))
                #expect(
                    thrownBy {
                        try manager.createDirectory(
                            atPath: fixture.path("d"), withIntermediateDirectories: true,
                            attributes: [.protectionKey: value])
                    }?.code == 512)
            }
        }
        #expect(fixture.bytes("a") == FilesFixture.content)
        #expect(try fixture.names() == ["a"])
    }

    @Test func whatIsNotThereTakesNoClass() throws {
        let fixture = try FilesFixture()
        let found = fixture.run {
            thrownBy {
                try manager.setAttributes(
                    [.protectionKey: FileProtectionType.complete], ofItemAtPath: fixture.path("none"))
            }
        }
        #expect(found == FilesFailure(code: 4, beneath: 2))
    }

    @Test(arguments: LockState.allCases, classes)
    func classAndLengthAreToldInEveryState(_ state: LockState, _ protectionClass: ProtectionClass) throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", protectionClass)
        try fixture.protect("empty", protectionClass, Data())
        try fixture.run(state) {
            let attributes = try manager.attributesOfItem(atPath: fixture.path("a"))
            #expect(attributes[.size] as? UInt64 == 9000)
            #expect(attributes[.size] as? Int == 9000)
            #expect(attributes[.protectionKey] as? FileProtectionType == protectionClass.fileProtectionType)
            #expect(attributes[.protectionKey] as? String == protectionClass.fileProtectionType.rawValue)
            #expect(
                attributes[FileAttributeKey("NSFileExtendedAttributes")] == nil, "the key record is nobody's to copy")
            #expect(try manager.attributesOfItem(atPath: fixture.path("empty"))[.size] as? Int == 0)
        }
    }

    @Test func lengthAndClassNeedNoKeybag() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        // No keys are given: what is asked here asks nobody.
        let attributes = try manager.attributesOfItem(atPath: fixture.path("a"))
        #expect(attributes[.size] as? Int == 9000)
        #expect(attributes[.protectionKey] as? FileProtectionType == .complete)
    }

    @Test func anotherFilesAttributesDoNotBringItsKeyRecord() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try fixture.write("b")
        let own = try KeyRecordReader.attributes(of: fixture.path("a"))
        #expect(own != nil)
        try fixture.run {
            try manager.setAttributes(own ?? [:], ofItemAtPath: fixture.path("b"))
        }
        #expect(try fixture.protectionClass("b") == nil)
    }

    @Test func theAttributesOfALinkAreItsOwn() throws {
        let fixture = try FilesFixture()
        try fixture.protect("a", .complete)
        try manager.createSymbolicLink(atPath: fixture.path("link"), withDestinationPath: "a")
        let attributes = try manager.attributesOfItem(atPath: fixture.path("link"))
        #expect(attributes[.type] as? FileAttributeType == .typeSymbolicLink)
        #expect(attributes[.protectionKey] == nil)
        try fixture.run {
            try manager.setAttributes([.protectionKey: FileProtectionType.none], ofItemAtPath: fixture.path("link"))
        }
        #expect(
            try fixture.protectionClass("a") == ProtectionClass.none,
            "a class is set through a link, as permissions are")
    }
}
