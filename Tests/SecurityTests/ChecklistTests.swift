import Foundation
import Security
import Testing

@Suite struct ChecklistTests {
    @Test(arguments: Checklist.rows)
    func holdsInMemory(_ row: ChecklistRow) throws { try run(row, MemoryHome.self) }

    @Test(arguments: Checklist.rows)
    func holdsEmbedded(_ row: ChecklistRow) throws { try run(row, EmbeddedHome.self) }

    @Test(arguments: Checklist.rows)
    func holdsThroughAnAgent(_ row: ChecklistRow) throws { try run(row, AgentHome.self) }

    private func run(_ row: ChecklistRow, _ home: any ChecklistHome.Type) throws {
        guard row.needs.isSubset(of: home.offers) else { return }
        try row.body(try home.init())
    }

    @Test func everyNumberHasARowOrAReason() throws {
        let rows = Checklist.rows.map(\.number)
        #expect(Set(rows).count == rows.count)
        let left = try Self.numbersLeftOut()
        #expect(Set(left).count == left.count)
        #expect(Set(rows).isDisjoint(with: left))
        #expect(Set(rows).union(left) == Checklist.numbers)
    }

    /// A reason that names a test is none when the test is gone.
    @Test func theReasonsNameTests() throws {
        let table = try #require(try Self.page().components(separatedBy: "| why there is no row |").last)
        let names = table.split(separator: "`").enumerated().compactMap {
            $0.offset.isMultiple(of: 2) ? nil : $0.element
        }
        #expect(!names.isEmpty)
        let tests = Self.root.appendingPathComponent("Tests")
        var functions: Set<Substring> = []
        for case let file as URL in try #require(
            FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil))
        where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            functions.formUnion(text.matches(of: /func (\w+)\(/).map(\.output.1))
        }
        for name in names { #expect(functions.contains(name), "\(name)") }
    }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func page() throws -> String {
        try String(contentsOf: root.appendingPathComponent("docs/security-module.md"), encoding: .utf8)
    }

    /// The first column of the last table of the page.
    private static func numbersLeftOut() throws -> [Int] {
        let page = try Self.page()
        let table = try #require(page.components(separatedBy: "| why there is no row |").last)
        return table.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 2, !cells[1].isEmpty else { return nil }
            return Int(cells[0])
        }
    }

    @Test func thePageNamesTheNumberOfEachError() throws {
        let page = try Self.page()
        for code in KeychainErrorCodes.all {
            let line = page.split(separator: "\n").first { line in
                line.hasPrefix("|") && line.contains(" \(code.status) ")
                    && line.split(separator: "|")[0].split(whereSeparator: { !$0.isLetter }).contains {
                        $0 == code.name
                    }
            }
            #expect(line != nil, "\(code.name) \(code.status)")
        }
    }
}
