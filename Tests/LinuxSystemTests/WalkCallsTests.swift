import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

/// The calls for walks over many files, which take names as C strings and buffers of the caller: they answer what the
/// others answer.
@Suite struct WalkCallsTests {
    @Test(arguments: SystemUnderTest.allCases)
    func attributesAndStatusByCStringAreThoseByPath(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        try directory.write([1, 2, 3], to: "file")
        try directory.makeDirectory("inner")
        #expect(symlink("file", directory.appending("link").description) == 0)
        let file = try calls.openFile("file", in: directory.descriptor, [.read])
        try calls.setAttribute("user.test", of: file.number, to: [7, 8, 9], replacing: .allowed)
        for name in ["file", "inner", "link"] as [FilePath] {
            let byName = try name.asCString { try calls.status(ofName: $0, in: directory.descriptor) }
            #expect(byName == (try calls.status(of: name, in: directory.descriptor, followLinks: false)))
        }
        var buffer = [UInt8](repeating: 0xEE, count: 4)
        func attribute(_ name: FilePath, _ attribute: String = "user.test", room: Int = 4) throws -> Int? {
            try buffer.withUnsafeMutableBytes { bytes in
                try name.asCString {
                    try calls.attribute(
                        attribute, ofName: $0, in: directory.descriptor,
                        into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<room]))
                }
            }
        }
        #expect(try attribute("file") == 3)
        #expect(buffer == [7, 8, 9, 0xEE])
        #expect(try attribute("inner") == nil)
        #expect(try attribute("file", "user.other") == nil)
        #expect(errorNumber { _ = try attribute("file", room: 2) } == ERANGE)
        #expect(errorNumber { _ = try attribute("missing") } == ENOENT)
        #expect(
            errorNumber {
                _ = try FilePath("missing").asCString { try calls.status(ofName: $0, in: directory.descriptor) }
            }
                == ENOENT)
    }

    @Test(arguments: SystemUnderTest.allCases)
    func recordsAreThoseOfTheEntries(system: SystemUnderTest) throws {
        let calls = system.calls
        let directory = try TemporaryDirectory()
        for number in 0..<300 { try directory.write([], to: FilePath("name-\(number)") ?? ".") }
        try directory.makeDirectory("inner")
        let entries = try calls.entries(directory.descriptor)
        let again = try calls.openFile(directory.path, [.read, .directory])
        var records: [DirectoryEntry] = []
        // Room for some names at a time only.
        var buffer = [UInt8](repeating: 0, count: 512)
        while true {
            let count = try buffer.withUnsafeMutableBytes { try calls.readDirectory(again.number, into: $0) }
            if count == 0 { break }
            buffer.withUnsafeBytes { bytes in
                DirectoryEntry.forEachRecord(in: UnsafeRawBufferPointer(rebasing: bytes[..<count])) {
                    name, kind, inode in
                    #expect(name.baseAddress?.load(fromByteOffset: name.count, as: UInt8.self) == 0)
                    if let name = FilePath(bytes: Array(name)) {
                        records.append(DirectoryEntry(name: name, kind: kind, inode: inode))
                    }
                }
            }
        }
        #expect(Set(records) == Set(entries))
        #expect(records.count == 301)
    }
}

extension FilePath {
    /// Like `withCString`, for bodies that throw.
    fileprivate func asCString<R>(_ body: (UnsafePointer<CChar>) throws -> R) throws -> R {
        try withCString { text in Result { try body(text) } }.get()
    }
}
