import FileProtection
import TestSupport
import Testing

/// The table of ``StateMatrix`` through the commands, with an agent that runs: 0 for what works, 10 for what is locked.
@Suite struct CommandStateMatrixTests {
    @Test(arguments: StateMatrix.State.allCases)
    func everyCellThatACommandCanDoIsAsTheTableSays(state: StateMatrix.State) throws {
        let place = try AgentPlace(usesCommands: true)
        let cells = StateMatrix.cells(of: state).filter { !CommandOperator.needsHandle.contains($0.operation) }
        #expect(!cells.isEmpty)
        try StateMatrixRun(in: place, by: CommandOperator(candado: CandadoCommand(place.agent))).run(cells)
    }

    /// A row that is neither run nor named as left out would be forgotten.
    @Test func everyRowIsRunByACommandOrNeedsAHandle() throws {
        let performer = CommandOperator(candado: CandadoCommand(try RunningAgent()))
        let withoutCommand = StateMatrix.cells.filter { performer.steps(of: $0, in: "/nowhere") == nil }
        #expect(Set(withoutCommand.map(\.operation)) == CommandOperator.needsHandle)
    }
}
