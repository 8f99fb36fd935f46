import FileProtection
import Glibc
import KeychainModel
import KeychainStore

/// `candado keychain entitle` and `candado keychain entitlements`
enum EntitlementCommands {
    static func entitle(_ context: CommandContext) throws -> ExitStatus {
        let invocation = context.invocation
        let home = try existingHome(context)
        let file = EntitlementsFile(inHome: home.directory, system: context.system)
        let operand = invocation.operands[0]
        let console = context.console
        if invocation.has(.remove) {
            let executable = try entry(of: operand, in: file)
            try remove(executable, from: file)
            if console.isJSON { console.line(.document([.init("executable", .string(executable))])) }
            return .done
        }
        guard let identifier = try invocation.text(.identifier) else {
            throw UsageError("'keychain entitle' needs --identifier or --remove")
        }
        let groups = try invocation.texts(.group)
        let executable = try program(operand, context.system)
        try file.set(executable, identifier: identifier, groups: groups)
        if console.isJSON {
            let entry = Entitlements.Entry(
                executable: executable, applicationIdentifier: identifier, accessGroups: groups)
            console.line(.document(members(entry)))
        }
        return .done
    }

    private static func remove(_ executable: String, from file: EntitlementsFile) throws {
        do throws(KeychainError) { try file.remove(executable) } catch {
            guard error.code == .itemNotFound else { throw error }
            throw CommandFailure(
                .noSuchItem, "the entitlements say nothing of \(Quoted.text(executable))",
                hints: ["'candado keychain entitlements' shows of whom they do"])
        }
    }

    static func list(_ context: CommandContext) throws -> ExitStatus {
        let session = try KeychainSession(context)
        let caller = try session.asItIs { try $0.perform(.whoAmI).answer.caller }
        let home = try Session.home(context)
        let entries = try EntitlementsFile(inHome: home.directory, system: context.system).list()
        let console = context.console
        if console.isJSON {
            console.line(
                .document([
                    .init("caller", caller.map { .object(members($0)) } ?? .null),
                    .init("entitlements", .array(entries.map { .object(members($0)) })),
                ]))
        } else {
            let rows = entries.map { entry in
                [
                    Quoted.text(entry.executable), Quoted.text(entry.applicationIdentifier),
                    entry.allGroups.map { Quoted.text($0) }.joined(separator: " "),
                ]
            }
            for line in TextLayout.table(rows) { console.line(line) }
            if let caller { console.line(sentence(caller)) }
        }
        return .done
    }

    private static func members(_ entry: Entitlements.Entry) -> [JSON.Member] {
        [
            .init("executable", .string(entry.executable)), .init("identifier", .string(entry.applicationIdentifier)),
            .init("groups", .array(entry.allGroups.map { .string($0) })),
        ]
    }

    private static func members(_ caller: Caller) -> [JSON.Member] {
        [
            .init("identifier", .optional(caller.applicationIdentifier)),
            .init("groups", .array(caller.accessGroups.map { .string($0) })),
            .init("all_groups", .boolean(caller.holdsAllGroups)), .init("source", .string(caller.source.rawValue)),
        ]
    }

    private static func sentence(_ caller: Caller) -> String {
        if caller.isAdministrator { return "this command sees every access group" }
        let groups = caller.accessGroups.map { Quoted.text($0) }.joined(separator: " ")
        return "this command is known by its \(caller.source.rawValue) and sees \(groups.isEmpty ? "nothing" : groups)"
    }

    /// Entitlements belong to a keybag: without one there is nobody to read them.
    private static func existingHome(_ context: CommandContext) throws -> KeybagHome {
        let home = try Session.home(context)
        _ = try Keybag.claimedIdentifier(in: home, context.system)
        return home
    }

    /// The absolute path that was given.
    private static func path(_ operand: Argument) throws -> FilePath {
        operand.path.isAbsolute ? operand.path : try workingDirectory().appending(operand.path)
    }

    private static func text(_ path: FilePath, _ operand: Argument) throws(UsageError) -> String {
        guard let text = path.text else { throw UsageError("an executable's path is UTF-8, not \(operand.quoted)") }
        return text
    }

    /// The file that a process executes, without links on the way: so an upgrade of it is known by its path.
    private static func program(_ operand: Argument, _ system: any SystemCalls) throws -> String {
        guard let path = ProcessFacts.realPath(try path(operand)) else {
            throw UsageError("there is no program at \(operand.quoted)")
        }
        let text = try text(path, operand)
        let status = try system.status(of: path, in: currentDirectory, followLinks: true)
        guard status.kind == .regular, status.permissions & 0o111 != 0 else {
            throw UsageError("\(operand.quoted) is no executable file")
        }
        guard try !isScript(path, system) else {
            throw UsageError(
                "\(operand.quoted) is a script, and what is executed is its interpreter: started by its absolute path a script is known by that, without an entry"
            )
        }
        return text
    }

    /// One that cannot be read is none: it is executed all the same.
    private static func isScript(_ path: FilePath, _ system: any SystemCalls) throws -> Bool {
        do throws(SystemError) {
            let file = try system.openFile(path, [.read])
            var bytes: [UInt8] = [0, 0]
            return try bytes.withUnsafeMutableBytes { buffer in
                Result { () throws(SystemError) in try system.readFully(file.number, into: buffer, at: 0) }
            }.get() == 2 && bytes == Array("#!".utf8)
        } catch {
            guard error.errorNumber == ErrorNumber.accessDenied else { throw error }
            return false
        }
    }

    /// The path of an entry that is to be removed: the program may be gone.
    private static func entry(of operand: Argument, in file: EntitlementsFile) throws -> String {
        let given = try path(operand)
        if let resolved = ProcessFacts.realPath(given)?.text, try file.read()[resolved] != nil { return resolved }
        return try text(given, operand)
    }

    private static func workingDirectory() throws -> FilePath {
        guard let path = getcwd(nil, 0) else { throw SystemError(call: "getcwd", errorNumber: errno) }
        defer { free(path) }
        return FilePath(copying: path)
    }
}
