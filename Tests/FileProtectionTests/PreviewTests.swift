import FileProtection
import TestSupport
import Testing

/// Previews: beside their source, in its class, found and removed with it.
@Suite struct PreviewTests {
    @Test(arguments: ProtectionClass.allCases)
    func aPreviewHasTheClassOfItsSource(protectionClass: ProtectionClass) throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("photo.jpg")
        try app.protection.write([1, 2, 3], to: source, class: protectionClass)
        let preview = try app.protection.writePreview([1], kind: "thumbnail", of: source)
        #expect(preview.path == app.path(".photo.jpg.preview-thumbnail"))
        #expect(try app.protection.protectionClass(of: preview.path) == protectionClass)
        #expect(try app.protection.contents(of: preview.path) == [1])
        // One that lies there in another class gets that of the source when it is made anew.
        try app.protection.setProtectionClass(
            protectionClass == .none ? .complete : ProtectionClass.none, of: preview.path)
        try app.protection.writePreview([2], kind: "thumbnail", of: source)
        #expect(try app.protection.protectionClass(of: preview.path) == protectionClass)
    }

    @Test func previewsAreFoundByNameAndRemovedWithTheirSource() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("a")
        for name in ["a", "b", "a.preview-x"] { try app.protection.write([1], to: app.path(FilePath(name) ?? "x")) }
        for kind in ["small", "large", "page-1"] { try app.protection.writePreview([1], kind: kind, of: source) }
        try app.protection.writePreview([1], kind: "y", of: app.path("a.preview-x"))
        try app.protection.writePreview([1], kind: "small", of: app.path("b"))
        for strange in [".a.preview-", ".a.preview-UP", ".a.preview-x.y", "a.preview-small"] {
            try app.directory.write([1], to: FilePath("files/" + strange) ?? "x")
        }
        #expect(try app.protection.previews(of: source).map(\.kind) == ["large", "page-1", "small"])
        #expect(try app.protection.previews(of: app.path("a.preview-x")).map(\.kind) == ["y"])
        try app.protection.lock()
        #expect(try app.protection.previews(of: source).count == 3)
        let before = try app.directory.names(in: "files")
        try app.protection.removeWithPreviews(source)
        #expect(
            Set(before).subtracting(try app.directory.names(in: "files"))
                == ["a", ".a.preview-small", ".a.preview-large", ".a.preview-page-1"])
    }

    @Test(arguments: ["", "Thumb", "a.b", "a/b", "ä", "a b", String(repeating: "a", count: 33)])
    func aKindThatIsNoNameIsRefused(kind: String) throws {
        let app = try AppFixture()
        try app.unlock()
        try app.protection.write([1], to: app.path("a"))
        #expect(code { try app.protection.writePreview([1], kind: kind, of: app.path("a")) } == .invalidArgument)
        #expect(try app.directory.names(in: "files") == ["a"])
    }

    @Test func whenTheSourceChangesItsClassItsPreviewsFollow() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("a")
        try app.protection.write([1], to: source, class: ProtectionClass.none)
        let small = try app.protection.writePreview([1], kind: "small", of: source)
        // A program that knew nothing of classes made this one.
        let plain = try Preview(of: source, kind: "plain")
        try app.directory.write([9], to: "files/.a.preview-plain")
        try app.protection.setProtectionClass(.complete, of: source)
        #expect(try app.protection.protectionClass(of: small.path) == ProtectionClass.none)
        #expect(try app.protection.alignPreviews(of: source) == [plain, small])
        #expect(try app.protection.alignPreviews(of: source) == [])
        for preview in [plain, small] {
            #expect(try app.protection.protectionClass(of: preview.path) == .complete)
        }
        #expect(try app.protection.contents(of: plain.path) == [9])
        try app.protection.lock()
        #expect(code { try app.protection.contents(of: small.path) } == .locked(.complete))
        #expect(code { try app.protection.writePreview([1], kind: "small", of: source) } == .locked(.complete))
        try app.unlock()
        for wanted in ProtectionClass.allCases + ProtectionClass.allCases.reversed() {
            try app.protection.setProtectionClass(wanted, ofFileAndPreviews: source)
            for path in [source, small.path, plain.path] {
                #expect(try app.protection.protectionClass(of: path) == wanted)
            }
        }
    }

    /// One that cannot be raised holds the file back: a preview is never weaker than its source because of this call.
    @Test func aPreviewThatCannotBeRaisedHoldsItsSourceBack() throws {
        let app = try AppFixture()
        try app.unlock()
        let source = app.path("a")
        try app.protection.write([1], to: source, class: .completeUnlessOpen)
        let preview = try app.protection.writePreview([1], kind: "small", of: source)
        let second = try LinuxSystemCalls.shared.openFile(preview.path, [.read])
        // A second name: a new key would part the two.
        try LinuxSystemCalls.shared.link(second.number, to: app.path("other name"), in: currentDirectory)
        #expect(code { try app.protection.setProtectionClass(.complete, ofFileAndPreviews: source) } == .unsupported)
        #expect(try app.protection.protectionClass(of: source) == .completeUnlessOpen)
        try LinuxSystemCalls.shared.unlink(app.path("other name"), in: currentDirectory)
        try app.protection.setProtectionClass(.complete, ofFileAndPreviews: source)
        #expect(try app.protection.protectionClass(of: source) == .complete)
        #expect(try app.protection.protectionClass(of: preview.path) == .complete)
    }
}
