import FileProtection
import TestSupport
import Testing

/// A home with class keys, and the way into each state.
protocol StateMatrixPlace {
    /// Where the cells' files lie.
    var directory: FilePath { get }
    /// The class keys as the operations see them. Unlocked to begin with.
    var protection: FileProtection { get }
    /// Somebody with all keys, once ``unlock()`` was called.
    var witness: FileProtection { get }

    /// Brings the place from the unlocked state into another.
    func enter(_ state: StateMatrix.State) throws
    func unlock() throws
}

/// Who carries out the operations of the table.
protocol StateMatrixOperator {
    /// Throws when it ended in any other way than the table knows, or when what it saw was wrong.
    func perform(_ stage: StateMatrixStage, _ protection: FileProtection) throws -> StateMatrix.Outcome
}

/// Runs cells of one state: their files are made while unlocked, the state comes once, and afterwards everything is unlocked
/// and looked at.
struct StateMatrixRun {
    let place: any StateMatrixPlace
    let performer: any StateMatrixOperator

    init(in place: any StateMatrixPlace, by performer: any StateMatrixOperator) {
        self.place = place
        self.performer = performer
    }

    func run(_ cells: [StateMatrix.Cell]) throws {
        guard let state = cells.first?.state else { return }
        var stages: [StateMatrixStage] = []
        for (index, cell) in cells.enumerated() {
            precondition(cell.state == state)
            let directory = place.directory.appending(FilePath("cell-\(index)") ?? ".")
            stages.append(try StateMatrixStage(cell, in: directory, place.protection))
        }
        try place.enter(state)
        for stage in stages { try stage.enter(place.protection) }
        var outcomes: [StateMatrix.Outcome?] = []
        for stage in stages {
            outcomes.append(try perform(stage))
            // No operation may have moved the state on.
            #expect(place.protection.lockState == state.lockState, "\(stage.cell)")
        }
        try place.unlock()
        for (stage, outcome) in zip(stages, outcomes) { check(stage, outcome) }
    }

    /// Nil when it ended in neither way.
    private func perform(_ stage: StateMatrixStage) throws -> StateMatrix.Outcome? {
        let before = try stage.fingerprint()
        do {
            let outcome = try performer.perform(stage, place.protection)
            #expect(outcome == stage.cell.outcome, "\(stage.cell)")
            if outcome == .locked {
                #expect(try stage.fingerprint() == before, "\(stage.cell): refused, but something changed")
            }
            return outcome
        } catch {
            Issue.record("\(stage.cell): \(error)")
            return nil
        }
    }

    private func check(_ stage: StateMatrixStage, _ outcome: StateMatrix.Outcome?) {
        guard let outcome else { return }
        do {
            if outcome == .ok {
                try stage.checkEffect(place.witness)
            } else {
                try stage.checkNothingIsLost(place.witness)
            }
        } catch {
            Issue.record("\(stage.cell), afterwards: \(error)")
        }
    }
}
