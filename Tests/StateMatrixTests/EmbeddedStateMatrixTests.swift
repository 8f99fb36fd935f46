import FileProtection
import Testing

/// The table of ``StateMatrix``, cell by cell, with the class keys in this process. Each cell has a keybag of its own.
@Suite struct EmbeddedStateMatrixTests {
    @Test(arguments: Array(Set(StateMatrix.cells.map(\.operation))).sorted())
    func everyCellIsAsTheTableSays(operation: String) throws {
        for cell in StateMatrix.cells where cell.operation == operation && cell.outcome != .absent {
            let place = try EmbeddedPlace()
            try StateMatrixRun(in: place, by: LibraryOperator()).run([cell])
        }
    }

    /// A table that lost a row would prove nothing.
    @Test func theTableHasEveryStateOfEveryOperation() {
        let byOperation = Dictionary(grouping: StateMatrix.cells, by: \.operation)
        #expect(byOperation.count == 40)
        for (operation, cells) in byOperation {
            let states = Set(cells.map(\.state))
            #expect(states.isSuperset(of: [.beforeFirstUnlock, .unlocked, .locked]), "\(operation)")
            #expect(cells.count == states.count * ProtectionClass.allCases.count, "\(operation)")
        }
    }
}
