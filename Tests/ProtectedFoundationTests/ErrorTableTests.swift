import FileProtection
import Testing

@testable import ProtectedFoundation

@Suite struct ErrorTableTests {
    /// One row for each code: what reading and writing throw, the `errno` beneath both, and whether a person is told what
    /// to do next.
    static let rows: [(code: ProtectionError.Code, reading: Int, writing: Int, beneath: Int32, helps: Bool)] = [
        (.locked(.complete), 257, 513, EPERM, true),
        (.locked(nil), 257, 513, EPERM, true),
        (.wrongPasscode, 256, 512, EKEYREJECTED, true),
        (.tooManyTries(retryAfter: 60), 256, 512, EAGAIN, true),
        (.noPasscodeSet, 256, 512, EPERM, true),
        (.noPasscodeSource, 257, 513, EPERM, true),
        (.notProtected, 256, 512, ENODATA, true),
        (.recordMissing, 259, 512, ENODATA, true),
        (.damaged(.record), 259, 512, EBADMSG, true),
        (.damaged(.header), 259, 512, EBADMSG, true),
        (.damaged(.unwrap), 259, 512, EBADMSG, true),
        (.damaged(.chunk), 259, 512, EBADMSG, true),
        (.damaged(.keybag), 259, 512, EBADMSG, true),
        (.damaged(.deviceKey), 259, 512, EBADMSG, true),
        (.damaged(.capsule), 259, 512, EBADMSG, true),
        (foreign, 256, 512, ENOKEY, true),
        (.needsNewerVersion, 256, 512, EOPNOTSUPP, true),
        (.unsupported, 256, 512, EOPNOTSUPP, true),
        (.noKeybag, 256, 512, ENOKEY, true),
        (.alreadyExists, 256, 516, EEXIST, false),
        (.otherClass(.none), 257, 513, EPERM, true),
        (.busy, 256, 512, EBUSY, true),
        (.invalidArgument, 256, 512, EINVAL, false),
        (.cancelled, 3072, 3072, ECANCELED, false),
        (.secretMemory, 256, 512, ENOMEM, true),
        (.cryptography, 256, 512, EIO, false),
        (.agentNotReachable, 256, 512, ECONNREFUSED, true),
        (.system(ENOENT), 260, 4, ENOENT, false),
        (.system(ENOTDIR), 256, 512, ENOTDIR, false),
        (.system(EACCES), 257, 513, EACCES, false),
        (.system(EPERM), 257, 513, EPERM, false),
        (.system(ENAMETOOLONG), 258, 514, ENAMETOOLONG, false),
        (.system(EFBIG), 263, 512, EFBIG, false),
        (.system(ENOSPC), 256, 640, ENOSPC, false),
        (.system(EDQUOT), 256, 640, EDQUOT, false),
        (.system(EROFS), 256, 642, EROFS, false),
        (.system(EEXIST), 256, 516, EEXIST, false),
        (.system(EIO), 256, 512, EIO, false),
    ]

    /// Not foreign only if identifiers are made otherwise than here, which the test of all kinds notices.
    private static let foreign =
        KeybagIdentifier(bytes: Array(0..<16)).map { ProtectionError.Code.foreignKeybag($0) } ?? .busy

    @Test func everyErrorHasItsCodeItsCauseAndItsAdvice() throws {
        for row in Self.rows {
            let cause = ProtectionError(row.code, "something is wrong", path: "/a")
            for (direction, code) in [(CocoaError.Direction.reading, row.reading), (.writing, row.writing)] {
                let error = CocoaError(cause, direction, path: "/a")
                let name = Comment(rawValue: "\(row.code), \(direction)")
                #expect(error.errorCode == code, name)
                #expect(Failure(error) == .cocoa(code, beneath: row.beneath), name)
                #expect(error.filePath == "/a" && error.url == URL(fileURLWithPath: "/a"), name)
                #expect((error.userInfo[CocoaError.protectionErrorKey] as? ProtectionError)?.code == row.code, name)
                let suggestion = (error as NSError).localizedRecoverySuggestion
                #expect((suggestion != nil) == row.helps, name)
                #expect(suggestion?.hasSuffix(".") != false, name)
            }
        }
    }

    @Test func theTableHasEveryKindOfError() {
        // Exhaustive: a new code does not compile until it has a number here, and fails until it has a row.
        func number(_ code: ProtectionError.Code) -> Int {
            switch code {
            case .locked: 0
            case .wrongPasscode: 1
            case .tooManyTries: 2
            case .noPasscodeSet: 3
            case .noPasscodeSource: 4
            case .notProtected: 5
            case .recordMissing: 6
            case .damaged: 7
            case .foreignKeybag: 8
            case .needsNewerVersion: 9
            case .unsupported: 10
            case .noKeybag: 11
            case .alreadyExists: 12
            case .otherClass: 13
            case .busy: 14
            case .invalidArgument: 15
            case .cancelled: 16
            case .secretMemory: 17
            case .cryptography: 18
            case .agentNotReachable: 19
            case .system: 20
            }
        }
        #expect(Set(Self.rows.map { number($0.code) }) == Set(0...20))
    }

    @Test func whatIsLockedHasAnObjectBeneathAsOnApplesSystems() {
        let error = CocoaError(ProtectionError(.locked(.complete), "the file is locked"), .reading, path: "/a")
        #expect((error.userInfo[NSUnderlyingErrorKey] as? NSError)?.domain == NSPOSIXErrorDomain)
        #expect(error.localizedDescription.contains("the file is locked"))
    }

    @Test func aDirectoryIsWhatItIsToFoundation() {
        let cause = ProtectionError(.unsupported, "this is a directory", reason: .directory)
        #expect(Failure(CocoaError(cause, .writing, path: "/a")) == .cocoa(512, beneath: EISDIR))
        #expect(Failure(CocoaError(cause, .reading, path: "/a")) == .cocoa(256, beneath: EISDIR))
    }

    @Test func everyReasonWhySomethingIsUnsupportedHasAdviceOrNone() {
        for reason in ProtectionError.Unsupported.allCases {
            let cause = ProtectionError(.unsupported, "no", reason: reason)
            let suggestion = (CocoaError(cause, .writing, path: "/a") as NSError).localizedRecoverySuggestion
            #expect((suggestion == nil) == [.directory, .notRegular].contains(reason), "\(reason)")
        }
    }

    /// Where a class is asked for, what is wrong with the place is told as for a plain file, word for word.
    @Test func errorsOfThePlaceAreFoundations() throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        try FileManager.default.createDirectory(at: fixture.url("directory"), withIntermediateDirectories: false)
        try fixture.store([1], "file")
        for name: FilePath in ["directory", "no/it", "file/it", FilePath(String(repeating: "n", count: 256)) ?? ""] {
            let url = fixture.url(name)
            let plain = told { try WholeFileCall.sample.write(to: url) }
            #expect(plain != nil)
            fixture.run {
                #expect(told { try WholeFileCall.sample.write(to: url, options: .completeFileProtection) } == plain)
            }
        }
        #expect(try fixture.names == ["directory", "file"])
    }

    private func told(_ body: () throws -> Void) -> String? {
        do {
            try body()
            return nil
        } catch {
            let outer = error as NSError
            return
                "\(type(of: error)) \(outer.code) \(outer.localizedDescription) \(outer.userInfo[NSFilePathErrorKey] ?? "") "
                + "\(outer.userInfo[NSURLErrorKey] ?? "") \(outer.userInfo[NSUnderlyingErrorKey] ?? "")"
        }
    }
}
