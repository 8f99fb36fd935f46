import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Sequences of calls on handles: Foundation's own on a plain file, ours on a plain file, and ours on a protected file have
/// to do the same.
@Suite struct FileHandlePlainTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let opening: HandleOpening
        let calls: [HandleCall]
        var testDescription: String { "\(opening) \(calls)" }

        init(_ opening: HandleOpening, _ calls: [HandleCall]) {
            self.opening = opening
            self.calls = calls
        }
    }

    static let cases: [Case] = [
        Case(.reading, [.readToEnd, .readToEnd, .offset]),
        Case(.reading, [.read(3), .offset, .read(3), .read(100), .read(1), .offset]),
        Case(.reading, [.read(0), .offset]),
        Case(.reading, [.seekToEnd, .read(1), .seek(2), .readToEnd]),
        Case(.reading, [.seek(1000), .offset, .readToEnd, .read(5), .availableData]),
        Case(.reading, [.seek(UInt64(Int64.max)), .offset]),
        Case(.reading, [.availableData, .availableData]),
        Case(.reading, [.write("x")]),
        Case(.reading, [.truncate(0), .synchronize]),
        Case(.reading, [.close, .close, .readToEnd]),
        Case(.reading, [.close, .read(1)]),
        Case(.reading, [.close, .offset]),
        Case(.reading, [.close, .seek(1)]),
        Case(.reading, [.close, .seekToEnd]),
        Case(.reading, [.olderRead(3), .olderOffset, .olderReadToEnd, .olderSeek(1), .olderRead(2), .olderSeekToEnd]),
        Case(.reading, [.olderClose, .olderClose, .readToEnd]),
        Case(.writing, [.write("ab"), .offset, .write(""), .write("cd"), .synchronize, .close]),
        Case(.writing, [.seekToEnd, .write("more"), .offset]),
        Case(.writing, [.seek(40), .write("behind a gap")]),
        Case(.writing, [.truncate(3), .offset, .write("x")]),
        Case(.writing, [.truncate(50), .offset]),
        Case(.writing, [.readToEnd]),
        Case(.writing, [.read(1)]),
        Case(.writing, [.close, .write("x")]),
        Case(.writing, [.close, .truncate(1)]),
        Case(.writing, [.close, .synchronize]),
        Case(
            .writing,
            [.olderSeek(2), .olderWrite("xy"), .olderTruncate(3), .olderOffset, .olderSynchronize, .olderClose]),
        Case(.updating, [.read(2), .write("XY"), .offset, .readToEnd, .seek(0), .readToEnd]),
        Case(.updating, [.truncate(0), .readToEnd, .write("new"), .seek(1), .read(10)]),
    ]

    @Test(arguments: cases) func aHandleDoesAsFoundationsDoes(_ each: Case) throws {
        let fixture = try FilesFixture()
        let start = Data("some content".utf8)
        for name in ["theirs", "ours"] { try fixture.write(name, start) }
        try fixture.protect("protected", .complete, start)
        let theirs = Self.outcome(each, FoundationFilesCalls(), fixture.url("theirs"))
        let ours = Self.outcome(each, OurFilesCalls(), fixture.url("ours"))
        let protected = fixture.run { Self.outcome(each, OurFilesCalls(), fixture.url("protected")) }
        #expect(ours == theirs)
        #expect(fixture.bytes("ours") == fixture.bytes("theirs"))
        #expect(protected == theirs)
        #expect(try fixture.content("protected") == fixture.bytes("theirs"))
    }

    private static func outcome(_ each: Case, _ calls: any FilesCalls, _ url: URL) -> [String] {
        do {
            let handle = try calls.handle(each.opening, url)
            return each.calls.map { call in
                do {
                    return try calls.perform(call, handle)
                } catch {
                    let error = error as NSError
                    let beneath = error.userInfo[NSUnderlyingErrorKey] as? any Error
                    return "\(error.domain) \(error.code) \(beneath.map { "\(($0 as NSError).code)" } ?? "")"
                }
            }
        } catch {
            return ["not opened: \(error)"]
        }
    }

    @Test(arguments: HandleOpening.allCases) func whatCannotBeOpenedIsFoundationsError(_ opening: HandleOpening) throws
    {
        let fixture = try FilesFixture()
        try fixture.makeDirectory("d")
        for name in ["none", "d", "none/a"] {
            let theirs = thrownBy { try FoundationFilesCalls().handle(opening, fixture.url(name)) }
            let ours = thrownBy { try OurFilesCalls().handle(opening, fixture.url(name)) }
            #expect(ours == theirs)
            let isThere = FoundationFilesCalls().handle(opening, path: fixture.path(name)) != nil
            #expect((OurFilesCalls().handle(opening, path: fixture.path(name)) != nil) == isThere)
        }
        #expect(try fixture.names() == ["d"])
    }
}
