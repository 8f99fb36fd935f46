import FileProtection

/// What a lock achieved, as JSON.
extension LockReport {
    /// True when nobody has keys any more.
    var isComplete: Bool { inTheWay.isEmpty }

    /// Who still has keys.
    var inTheWay: [String] {
        if case .incomplete(let holders) = outcome { holders } else { [] }
    }

    /// The members of a document.
    var members: [JSON.Member] {
        [
            .init("complete", .boolean(isComplete)), .init("in_the_way", .array(inTheWay.map { .string($0) })),
            .init("open_files", .array(openFiles.map(Self.json))),
        ]
    }

    private static func json(_ files: OpenFiles) -> JSON {
        .object([
            .init("pid", .integer(Int64(files.process))), .init("executable", .string(files.executable)),
            .init("count", .integer(Int64(files.count))),
        ])
    }
}
