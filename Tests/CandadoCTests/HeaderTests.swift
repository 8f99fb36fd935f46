import CCandado
import CandadoC
import FileProtection
import Testing

/// The header, and what is committed beside it.
@Suite struct HeaderTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/"

    private func text(_ path: String) throws -> String {
        let bytes = try SafeFile.read(
            FilePath(Self.root + path) ?? ".", maximumSize: 1 << 20, ownerOnly: false, LinuxSystemCalls.shared)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func theVersionIsTheHeaders() throws {
        let version = String(cString: try #require(candado_version()))
        #expect(version == CANDADO_VERSION)
        #expect(version == "\(CANDADO_VERSION_MAJOR).\(CANDADO_VERSION_MINOR).\(CANDADO_VERSION_PATCH)")
    }

    @Test func everyFunctionOfTheHeaderIsExportedAndDocumented() throws {
        let header = try text("Sources/CCandado/include/candado.h")
        let declared = try header.matches(of: Regex(#"(?m)^[a-z][a-z_0-9 ]*[ *](candado_[a-z_]+)\("#)).compactMap {
            $0.output[1].substring.map(String.init)
        }
        #expect(declared.count > 30)
        let exported = try text("packaging/libcandado.symbols").split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(declared.sorted() == exported.map(String.init))
        let documents = try ["docs/c-library.md", "docs/libcandado.3"].map { try text($0) }
        for name in declared {
            for (document, page) in zip(documents, ["the document", "the manual page"]) {
                #expect(document.contains(name), "\(name) is not in \(page)")
            }
        }
    }

    @Test func theManualPageHasTheVersionAndEveryErrnoOfTheHeader() throws {
        let page = try text("docs/libcandado.3")
        #expect(page.hasPrefix(".TH LIBCANDADO 3 \"\" \"candado \(CANDADO_VERSION)\" "))
        let header = try text("Sources/CCandado/include/candado.h")
        let numbers = Set(try header.matches(of: Regex(#"\bE[A-Z]{2,}\b"#)).map { String(header[$0.range]) })
        #expect(numbers.count > 20)
        for number in numbers.sorted() { #expect(page.contains(number), "\(number) is not in the manual page") }
    }

    @Test func everyExportedFunctionIsCalledByTheFuzzTarget() throws {
        let target = try text("Tests/Fuzz/CLibraryTarget.swift")
        let called = Set(try target.matches(of: Regex(#"\b(candado_[a-z_]+)\("#)).compactMap { $0.output[1].substring })
        let exported = try text("packaging/libcandado.symbols").split(separator: "\n").filter { !$0.hasPrefix("#") }
        for name in exported { #expect(called.contains(name), "\(name) is not called") }
    }

    @Test func namesAndNumbersOfClassesAreTheCommandLines() {
        for protectionClass in ProtectionClass.allCases {
            let name = candado_class_name(Int32(protectionClass.rawValue)).map { String(cString: $0) }
            #expect(name == protectionClass.name)
            #expect(candado_class_named(protectionClass.name) == Int32(protectionClass.rawValue))
        }
        for name in ["", "Complete", "completed", "default", "\u{E9}"] { #expect(candado_class_named(name) == -1) }
        #expect(CANDADO_RECORD_SIZE == KeyRecord.asymmetricSize)
        #expect(CANDADO_RECORD_ATTRIBUTE == KeyRecord.attributeName)
        #expect(UInt8(CANDADO_RECORD_KEY_WAS_WEAKER) == KeyRecord.Flags.keyWasWeaker.rawValue)
    }
}
