import FileProtection
import Testing

@testable import ProtectedFoundation

@Suite struct ErrorTableTests {
    @Test func whatIsLockedIsRefusedWithPermissionBeneath() throws {
        let locked = ProtectionError(.locked(.complete), "the file is locked")
        for (direction, code) in [(CocoaError.Direction.reading, 257), (.writing, 513)] {
            let error = CocoaError(locked, direction, path: "/a")
            #expect(error.errorCode == code)
            let beneath = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
            #expect(beneath.domain == NSPOSIXErrorDomain && beneath.code == 1)
        }
    }
}
