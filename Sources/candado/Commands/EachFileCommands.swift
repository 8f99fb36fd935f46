import FileProtection

/// `candado set-class` and `candado repair`: one change for each file.
enum EachFileCommands {
    static func setClass(_ context: CommandContext) throws -> ExitStatus {
        let operands = context.invocation.operands
        guard let wanted = operands[0].text.flatMap({ ProtectionClass(name: $0) }) else { return .usage }
        let rekey = context.invocation.has(.rekey)
        return try run(context, Array(operands.dropFirst()), verb: "changed") { files, place in
            let change = try files.setProtectionClass(of: place.name, in: place.directory, to: wanted, rekey: rekey)
            return FileOutcome(
                path: place.path, kind: change.changed ? .changed : .unchanged, protectionClass: change.to)
        }
    }

    static func repair(_ context: CommandContext) throws -> ExitStatus {
        try run(context, context.invocation.operands, verb: "mended", visitsDirectories: false) { files, place in
            let report = try files.repair(place.name, in: place.directory)
            return FileOutcome(
                path: place.path, kind: report.mended.isEmpty ? .unchanged : .changed,
                protectionClass: report.protectionClass, mended: report.mended.map(\.rawValue))
        }
    }

    /// A file or directory: how it is shown, and how it is reached however long its path is.
    private struct Place {
        let path: FilePath
        let name: FilePath
        let directory: Int32
    }

    private static func run(
        _ context: CommandContext, _ operands: [Argument], verb: String, visitsDirectories: Bool = true,
        _ body: (ProtectedFileSystem, Place) throws -> FileOutcome
    ) throws -> ExitStatus {
        let session = try Session(context)
        let isRecursive = context.invocation.has(.recursive)
        var collector = OutcomeCollector(verb: verb, console: context.console)
        /// One file, with an unlock when it turns out to be locked.
        func change(_ place: Place, isOperand: Bool) throws {
            let path = place.path
            do {
                collector.add(try session.unlocking { try body(session.protection.files, place) })
            } catch var error as ProtectionError {
                error.path = path
                switch error.code {
                case .cancelled, .wrongPasscode, .tooManyTries: throw error
                // A tree may hold plain files; only a path that was named has to be protected.
                case .notProtected where !isOperand: collector.add(FileOutcome(path: path, kind: .unchanged))
                default: collector.add(FileOutcome(path: path, kind: .failed(error)))
                }
            }
        }
        do {
            for operand in operands {
                let path = operand.path
                guard isRecursive else {
                    try context.checkInterrupt()
                    try change(Place(path: path, name: path, directory: currentDirectory), isOperand: true)
                    continue
                }
                let walk = TreeWalk(
                    crossesFileSystems: context.invocation.has(.crossFileSystems),
                    excluded: session.protection.ownFiles(),
                    system: context.system, isCancelled: { Interrupts.isRequested })
                try walk.run(path) { path, result in
                    switch result {
                    case .success(let visit):
                        let place = Place(path: path, name: visit.name, directory: visit.directory)
                        switch visit.status.kind {
                        case .regular: try change(place, isOperand: path == operand.path)
                        case .directory: if visitsDirectories { try change(place, isOperand: true) }
                        case .symbolicLink, .special: break
                        }
                    case .failure(let error): collector.add(FileOutcome(path: path, kind: .failed(error)))
                    }
                }
            }
        } catch {
            // Whatever ended it, what was done is said.
            session.showWarnings()
            _ = collector.finish()
            throw error
        }
        session.showWarnings()
        return collector.finish()
    }
}
