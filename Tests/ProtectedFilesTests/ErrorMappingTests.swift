import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// What the library says of errors of the calls below it.
@Suite struct ErrorMappingTests {
    private static func error(_ body: () throws -> Void) -> ProtectionError? {
        do {
            try body()
            return nil
        } catch { return error as? ProtectionError }
    }

    /// Linux fails with the same number for both.
    @Test func aLinkThatIsNotFollowedIsToldFromLinksInACircle() throws {
        let fixture = try FilesFixture()
        try fixture.files.write([1], to: fixture.path("file"), class: ProtectionClass.none)
        try #require(symlink("circle", fixture.path("circle").description) == 0)
        try #require(symlink("file", fixture.path("link").description) == 0)
        for name: FilePath in ["link", "circle"] {
            let error = Self.error { _ = try fixture.files.contents(of: fixture.path(name)) }
            #expect(error?.code == .unsupported && error?.reason == .symbolicLink, "\(name)")
        }
        let inside = fixture.path("circle/file")
        for (name, body) in [
            ("read", { _ = try fixture.files.contents(of: inside) }),
            ("write", { try fixture.files.write([1], to: inside) }),
            ("open", { _ = try fixture.files.open(inside, for: .reading) }),
            ("set class", { _ = try fixture.files.setProtectionClass(of: inside, to: .complete) }),
        ] as [(String, () throws -> Void)] {
            let error = Self.error(body)
            #expect(error?.code == .system(ELOOP) && error?.reason == nil, "\(name): \(String(describing: error))")
            #expect(error?.message.contains("circles") == true && error?.path == inside, "\(name)")
        }
    }
}
