/// What `doctor` found.
struct DoctorReport: Sendable, Hashable {
    /// How a check went.
    enum Outcome: String, Sendable {
        case good
        case mended
        case warning
        case bad
    }

    /// One check.
    struct Check: Sendable, Hashable {
        let name: String
        let outcome: Outcome
        let message: String
    }

    private(set) var checks: [Check] = []

    /// Adds a check.
    mutating func add(_ name: String, _ outcome: Outcome, _ message: String) {
        checks.append(Check(name: name, outcome: outcome, message: message))
    }

    /// Fails only for what is bad: a warning is a choice that somebody may have made.
    var status: ExitStatus { checks.contains { $0.outcome == .bad } ? .failed : .done }

    /// The document.
    var json: JSON {
        .document([
            .init(
                "checks",
                .array(
                    checks.map { check in
                        .object([
                            .init("name", .string(check.name)), .init("outcome", .string(check.outcome.rawValue)),
                            .init("message", .string(check.message)),
                        ])
                    }))
        ])
    }

    /// The lines.
    var lines: [String] {
        checks.map { check in
            let outcome = check.outcome.rawValue
            return outcome + String(repeating: " ", count: 9 - outcome.count) + check.name + ": " + check.message
        }
    }
}
