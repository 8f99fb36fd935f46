import Cryptography
import FileProtection
import TestSupport
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

/// A keybag of the cheapest passcode in this process.
private final class EmbeddedPlace: StateMatrixPlace {
    private let temporary: TemporaryDirectory
    private let clock = TestClock()
    let directory: FilePath
    /// The keybag that made the files: it has all keys when it is unlocked.
    let witness: FileProtection
    private(set) var protection: FileProtection

    init() throws {
        temporary = try TemporaryDirectory(.memory)
        directory = temporary.appending("files")
        try temporary.makeDirectory("files")
        let keybag = try Keybag.create(
            in: KeybagHome(directory: temporary.appending("home")), passcode: try RunningAgent.passcode(),
            recoveryKey: nil, cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)), clock: clock)
        witness = try FileProtection.attach(keybag, clock: clock)
        protection = witness
    }

    func enter(_ state: StateMatrix.State) throws {
        switch state {
        case .unlocked: break
        // A keybag opened afresh is another owner of the class keys.
        case .beforeFirstUnlock: protection = try FileProtection.open(witness.home, clock: clock)
        case .locked: try protection.lock()
        case .unlockedAgain:
            try protection.lock()
            try unlock()
        }
    }

    func unlock() throws {
        if witness.lockState != .unlocked { try witness.unlock(passcode: try RunningAgent.passcode()) }
    }
}
