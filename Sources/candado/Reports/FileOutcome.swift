import FileProtection

/// What became of one file in a command over many.
struct FileOutcome: Sendable {
    /// What became of it.
    enum Kind: Sendable {
        /// It is as asked now, and was not before.
        case changed
        /// It was as asked already.
        case unchanged
        /// It was left out on purpose, and why.
        case skipped(SkipReason)
        /// It could not be done.
        case failed(ProtectionError)
    }

    let path: FilePath
    let kind: Kind
    /// The class now, where there is one.
    let protectionClass: ProtectionClass?
    /// What was mended, for `repair`.
    let mended: [String]

    /// Joins the facts.
    init(path: FilePath, kind: Kind, protectionClass: ProtectionClass? = nil, mended: [String] = []) {
        self.path = path
        self.kind = kind
        self.protectionClass = protectionClass
        self.mended = mended
    }

    /// One line of JSON.
    var json: JSON {
        var members: [JSON.Member] = [JSON.path(path)]
        switch kind {
        case .changed: members.append(.init("changed", .boolean(true)))
        case .unchanged: members.append(.init("changed", .boolean(false)))
        case .skipped(let reason):
            members += [.init("changed", .boolean(false)), .init("skipped", .string(reason.rawValue))]
        case .failed(let error): members += [.init("changed", .boolean(false)), .init("error", error.json)]
        }
        if let protectionClass { members.append(.init("class", .string(protectionClass.name))) }
        if !mended.isEmpty { members.append(.init("mended", .array(mended.map { .string($0) }))) }
        return .document(members)
    }
}

/// Collects the outcomes of a command over many files: shows each where that is asked for, adds up the exit status, and
/// says at the end what was done.
struct OutcomeCollector: Sendable {
    /// The command's verb, done: `protected`.
    let verb: String
    private let console: Console
    private(set) var tally = ExitTally()
    private(set) var changed = 0
    private(set) var unchanged = 0
    private(set) var skipped = 0
    /// Of those left out: the symbolic links, which are many in some trees and nothing to act upon.
    private(set) var links = 0
    private(set) var failed = 0

    /// Shows outcomes on a console.
    init(verb: String, console: Console) {
        self.verb = verb
        self.console = console
    }

    /// Takes one outcome.
    mutating func add(_ outcome: FileOutcome) {
        if console.isJSON { console.line(outcome.json) }
        switch outcome.kind {
        case .changed:
            changed += 1
            tally.countDone()
        case .unchanged:
            unchanged += 1
            tally.countDone()
        case .skipped(let reason):
            // What was never meant to be done makes no run a failure.
            skipped += 1
            if reason == .symbolicLink {
                links += 1
            } else {
                console.warning("\(outcome.path.quoted) is left out: \(reason.rawValue)")
            }
        case .failed(let error):
            failed += 1
            console.error(error.at(outcome.path))
            tally.countFailure(ExitStatus(error.code))
        }
    }

    /// Says what was done, and returns the exit status.
    func finish() -> ExitStatus {
        if console.isJSON {
            let counts: [JSON.Member] = [
                .init("changed", .integer(Int64(changed))), .init("unchanged", .integer(Int64(unchanged))),
                .init("skipped", .integer(Int64(skipped))), .init("failed", .integer(Int64(failed))),
            ]
            console.line(JSON.document([.init("summary", .object(counts))]))
        } else if !console.isQuiet {
            console.line(summary)
        }
        return tally.status
    }

    /// One line for people.
    var summary: String {
        var parts = ["\(changed) \(verb)"]
        if unchanged > 0 { parts.append("\(unchanged) as asked already") }
        if links > 0 { parts.append("\(links) symbolic \(links == 1 ? "link" : "links") left alone") }
        if skipped > links { parts.append("\(skipped - links) left out") }
        if failed > 0 { parts.append("\(failed) failed") }
        return parts.joined(separator: ", ")
    }
}
