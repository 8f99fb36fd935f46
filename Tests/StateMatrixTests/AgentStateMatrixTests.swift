import FileProtection
import Testing

/// The table of ``StateMatrix``, cell by cell, with the class keys in an agent's process.
@Suite struct AgentStateMatrixTests {
    @Test(arguments: StateMatrix.State.allCases)
    func everyCellIsAsTheTableSaysThroughAnAgent(state: StateMatrix.State) throws {
        try StateMatrixRun(in: try AgentPlace(), by: LibraryOperator()).run(StateMatrix.cells(of: state))
    }

    /// Who was connected to an agent that was killed sees what a newcomer sees.
    @Test func everyCellBeforeTheFirstUnlockIsAsTheTableSaysForAClientWhoseAgentWasKilled() throws {
        let place = try AgentPlace(keepsClient: true)
        try StateMatrixRun(in: place, by: LibraryOperator()).run(StateMatrix.cells(of: .beforeFirstUnlock))
    }
}
