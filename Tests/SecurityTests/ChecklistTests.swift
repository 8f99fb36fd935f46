import Foundation
import Security
import Testing

@Suite struct ChecklistTests {
    @Test(arguments: Checklist.rows)
    func holdsInMemory(_ row: ChecklistRow) throws { try run(row, MemoryHome.self) }

    private func run(_ row: ChecklistRow, _ home: any ChecklistHome.Type) throws {
        guard row.needs.isSubset(of: home.offers) else { return }
        try row.body(try home.init())
    }
}
