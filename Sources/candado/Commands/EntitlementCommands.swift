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
        let executable = try path(invocation.operands[0])
        let console = context.console
        if invocation.has(.remove) {
            try remove(executable, from: file)
            if console.isJSON { console.line(.document([.init("executable", .string(executable))])) }
            return .done
        }
        guard let identifier = try invocation.text(.identifier) else {
            throw UsageError("'keychain entitle' needs --identifier or --remove")
        }
        let groups = try invocation.texts(.group)
        let warning = try warning(executable, context)
        try file.set(executable, identifier: identifier, groups: groups)
        if let warning { console.warning(warning) }
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

    /// What an entry will not do: what counts is the file that a process executes. Nil where nothing stands against it.
    private static func warning(_ executable: String, _ context: CommandContext) throws -> String? {
        guard let path = FilePath(executable) else { return nil }
        let shown = Quoted.text(executable)
        do throws(SystemError) {
            let status = try context.system.status(of: path, in: currentDirectory, followLinks: true)
            if status.kind == .directory { throw SystemError(call: "open", errorNumber: EISDIR, path: path) }
            if try isScript(path, context.system) {
                return "\(shown) is a script: its process executes the interpreter, and the entry does not count for it"
            }
        } catch {
            switch error.errorNumber {
            case ENOENT, ENOTDIR:
                return "nothing is at \(shown) yet: the entry counts once a program is there"
            case EISDIR: throw CommandFailure(.usage, "\(shown) is a directory, and no program")
            default: break
            }
        }
        return nil
    }

    private static func isScript(_ path: FilePath, _ system: any SystemCalls) throws(SystemError) -> Bool {
        let file = try system.openFile(path, [.read, .nonBlocking])
        var start: UInt16 = 0
        let count = try withUnsafeMutableBytes(of: &start) { (buffer) throws(SystemError) in
            try system.readFully(file.number, into: buffer, at: 0)
        }
        // "#!"
        return count == 2 && UInt16(bigEndian: start) == 0x2321
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

    /// The absolute path of a program.
    private static func path(_ operand: Argument) throws -> String {
        let given = operand.path
        let absolute = given.isAbsolute ? given : try workingDirectory().appending(given)
        guard let text = absolute.text else { throw UsageError("an executable's path is UTF-8, not \(operand.quoted)") }
        return text
    }

    private static func workingDirectory() throws -> FilePath {
        guard let path = getcwd(nil, 0) else { throw SystemError(call: "getcwd", errorNumber: errno) }
        defer { free(path) }
        return FilePath(copying: path)
    }
}
