import ProtectionModel

/// The state matrix of Apple's Data Protection as a table (HFS `hfs_cprotect.c` and xnu `tests/data_protection.c`), with
/// Candado's own rows where it differs on purpose or has more calls. Columns are classes A to D.
///
/// `ok`: works, and the effect is looked at. `locked`: throws `locked`, and not a byte of the file changes. `-`: cannot
/// come about, because no such file can be opened in that state.
enum StateMatrix {
    /// The state in which a row's operation runs.
    enum State: String, CaseIterable {
        /// A keybag opened afresh over files made earlier. Handles are those that this state can create.
        case beforeFirstUnlock
        case unlocked
        /// Locked with handles open that were opened while unlocked.
        case locked
        /// Unlocked again, with the handles from before the lock.
        case unlockedAgain

        /// What the owner of the class keys says in it.
        var lockState: LockState {
            switch self {
            case .beforeFirstUnlock: .beforeFirstUnlock
            case .unlocked, .unlockedAgain: .unlocked
            case .locked: .locked
            }
        }
    }

    enum Outcome: String, Sendable {
        case ok
        case locked
        case absent = "-"
    }

    struct Cell: Sendable, CustomStringConvertible {
        let operation: String
        let state: State
        let protectionClass: ProtectionClass
        let outcome: Outcome
        var description: String { "\(operation), \(state), class \(protectionClass.name)" }
    }

    /// The class that an operation changes to; nil for one that changes none.
    static func targetClass(of operation: String) -> ProtectionClass? {
        guard operation.hasPrefix("change class to ") || operation.hasPrefix("rekey to ") else { return nil }
        switch operation.split(separator: " ").last {
        case "complete": return .complete
        case "B": return .completeUnlessOpen
        case "C": return .completeUntilFirstUserAuthentication
        default: return ProtectionClass.none
        }
    }

    /// Rows whose states are all alike have `every`.
    private static let table = """
        create a whole file               | beforeFirstUnlock | locked | ok     | locked | ok
        create a whole file               | unlocked          | ok     | ok     | ok     | ok
        create a whole file               | locked            | locked | ok     | ok     | ok
        create through a handle           | beforeFirstUnlock | locked | ok     | locked | ok
        create through a handle           | unlocked          | ok     | ok     | ok     | ok
        create through a handle           | locked            | locked | ok     | ok     | ok
        create by the directory's class   | beforeFirstUnlock | locked | ok     | locked | ok
        create by the directory's class   | unlocked          | ok     | ok     | ok     | ok
        create by the directory's class   | locked            | locked | ok     | ok     | ok
        protect a plain file              | beforeFirstUnlock | locked | ok     | locked | ok
        protect a plain file              | unlocked          | ok     | ok     | ok     | ok
        protect a plain file              | locked            | locked | ok     | ok     | ok
        open for reading                  | beforeFirstUnlock | locked | locked | locked | ok
        open for reading                  | unlocked          | ok     | ok     | ok     | ok
        open for reading                  | locked            | locked | locked | ok     | ok
        open for updating                 | beforeFirstUnlock | locked | locked | locked | ok
        open for updating                 | unlocked          | ok     | ok     | ok     | ok
        open for updating                 | locked            | locked | locked | ok     | ok
        read the whole content            | beforeFirstUnlock | locked | locked | locked | ok
        read the whole content            | unlocked          | ok     | ok     | ok     | ok
        read the whole content            | locked            | locked | locked | ok     | ok
        unprotect                         | beforeFirstUnlock | locked | locked | locked | ok
        unprotect                         | unlocked          | ok     | ok     | ok     | ok
        unprotect                         | locked            | locked | locked | ok     | ok
        repair                            | beforeFirstUnlock | locked | locked | locked | ok
        repair                            | unlocked          | ok     | ok     | ok     | ok
        repair                            | locked            | locked | locked | ok     | ok
        replace with the same class       | beforeFirstUnlock | locked | locked | locked | ok
        replace with the same class       | unlocked          | ok     | ok     | ok     | ok
        replace with the same class       | locked            | locked | locked | ok     | ok
        replace with class none           | beforeFirstUnlock | locked | locked | locked | ok
        replace with class none           | unlocked          | ok     | ok     | ok     | ok
        replace with class none           | locked            | locked | locked | ok     | ok
        read through a handle             | beforeFirstUnlock | -      | ok     | -      | ok
        read through a handle             | unlocked          | ok     | ok     | ok     | ok
        read through a handle             | locked            | locked | ok     | ok     | ok
        read through a handle             | unlockedAgain     | ok     | ok     | ok     | ok
        write through a handle            | beforeFirstUnlock | -      | ok     | -      | ok
        write through a handle            | unlocked          | ok     | ok     | ok     | ok
        write through a handle            | locked            | locked | ok     | ok     | ok
        write through a handle            | unlockedAgain     | ok     | ok     | ok     | ok
        append through a handle           | beforeFirstUnlock | -      | ok     | -      | ok
        append through a handle           | unlocked          | ok     | ok     | ok     | ok
        append through a handle           | locked            | locked | ok     | ok     | ok
        append through a handle           | unlockedAgain     | ok     | ok     | ok     | ok
        shorten through a handle          | beforeFirstUnlock | -      | ok     | -      | ok
        shorten through a handle          | unlocked          | ok     | ok     | ok     | ok
        shorten through a handle          | locked            | locked | ok     | ok     | ok
        shorten through a handle          | unlockedAgain     | ok     | ok     | ok     | ok
        lengthen through a handle         | beforeFirstUnlock | -      | ok     | -      | ok
        lengthen through a handle         | unlocked          | ok     | ok     | ok     | ok
        lengthen through a handle         | locked            | locked | ok     | ok     | ok
        lengthen through a handle         | unlockedAgain     | ok     | ok     | ok     | ok
        length through a handle           | beforeFirstUnlock | -      | ok     | -      | ok
        length through a handle           | unlocked          | ok     | ok     | ok     | ok
        length through a handle           | locked            | locked | ok     | ok     | ok
        length through a handle           | unlockedAgain     | ok     | ok     | ok     | ok
        open a second handle              | beforeFirstUnlock | -      | locked | -      | ok
        open a second handle              | unlocked          | ok     | ok     | ok     | ok
        open a second handle              | locked            | locked | locked | ok     | ok
        open a second handle              | unlockedAgain     | ok     | ok     | ok     | ok
        fsync after a write               | beforeFirstUnlock | -      | ok     | -      | ok
        fsync after a write               | unlocked          | ok     | ok     | ok     | ok
        fsync after a write               | locked            | ok     | ok     | ok     | ok
        close after a write               | beforeFirstUnlock | -      | ok     | -      | ok
        close after a write               | unlocked          | ok     | ok     | ok     | ok
        close after a write               | locked            | ok     | ok     | ok     | ok
        change class to complete          | beforeFirstUnlock | locked | locked | locked | locked
        change class to complete          | unlocked          | ok     | ok     | ok     | ok
        change class to complete          | locked            | locked | locked | locked | locked
        change class to B                 | beforeFirstUnlock | locked | locked | locked | ok
        change class to B                 | unlocked          | ok     | ok     | ok     | ok
        change class to B                 | locked            | locked | locked | ok     | ok
        change class to C                 | beforeFirstUnlock | locked | locked | locked | locked
        change class to C                 | unlocked          | ok     | ok     | ok     | ok
        change class to C                 | locked            | locked | locked | ok     | ok
        change class to none              | beforeFirstUnlock | locked | locked | locked | ok
        change class to none              | unlocked          | ok     | ok     | ok     | ok
        change class to none              | locked            | locked | locked | ok     | ok
        rekey to complete                 | beforeFirstUnlock | locked | locked | locked | locked
        rekey to complete                 | unlocked          | ok     | ok     | ok     | ok
        rekey to complete                 | locked            | locked | locked | locked | locked
        rekey to B                        | beforeFirstUnlock | locked | locked | locked | ok
        rekey to B                        | unlocked          | ok     | ok     | ok     | ok
        rekey to B                        | locked            | locked | locked | ok     | ok
        rekey to C                        | beforeFirstUnlock | locked | locked | locked | locked
        rekey to C                        | unlocked          | ok     | ok     | ok     | ok
        rekey to C                        | locked            | locked | locked | ok     | ok
        rekey to none                     | beforeFirstUnlock | locked | locked | locked | ok
        rekey to none                     | unlocked          | ok     | ok     | ok     | ok
        rekey to none                     | locked            | locked | locked | ok     | ok
        rename                            | every             | ok     | ok     | ok     | ok
        link                              | every             | ok     | ok     | ok     | ok
        unlink                            | every             | ok     | ok     | ok     | ok
        stat                              | every             | ok     | ok     | ok     | ok
        change permissions                | every             | ok     | ok     | ok     | ok
        change times                      | every             | ok     | ok     | ok     | ok
        read the class                    | every             | ok     | ok     | ok     | ok
        set another attribute             | every             | ok     | ok     | ok     | ok
        list a directory of the class     | every             | ok     | ok     | ok     | ok
        make a directory in one           | every             | ok     | ok     | ok     | ok
        set the class of a directory      | every             | ok     | ok     | ok     | ok
        take the class off a directory    | every             | ok     | ok     | ok     | ok
        """

    /// The cells of a state that can come about.
    static func cells(of state: State) -> [Cell] { cells.filter { $0.state == state && $0.outcome != .absent } }

    static let cells: [Cell] = table.split(separator: "\n").flatMap { line -> [Cell] in
        let columns = line.split(separator: "|").map { String($0).trimmed }
        let states = columns[1] == "every" ? State.allCases : State.allCases.filter { $0.rawValue == columns[1] }
        precondition(columns.count == 6 && !states.isEmpty)
        return states.flatMap { state in
            zip(ProtectionClass.allCases, columns[2...]).map { protectionClass, text in
                guard let outcome = Outcome(rawValue: text) else { preconditionFailure("\(line)") }
                return Cell(operation: columns[0], state: state, protectionClass: protectionClass, outcome: outcome)
            }
        }
    }
}

extension String {
    fileprivate var trimmed: String {
        let characters = Array(self)
        guard let first = characters.firstIndex(where: { $0 != " " }),
            let last = characters.lastIndex(where: { $0 != " " })
        else { return "" }
        return String(characters[first...last])
    }
}
