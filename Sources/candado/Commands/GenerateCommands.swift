import LinuxSystem
import ProtectionModel

/// `candado generate`: for packagers.
enum GenerateCommands {
    /// Writes the manual pages to a directory, which is made where it is missing.
    static func manual(_ context: CommandContext) throws -> ExitStatus {
        guard let directory = context.invocation.operands.first?.path else { return .usage }
        do throws(SystemError) {
            try context.system.makeDirectory(directory, in: currentDirectory, permissions: 0o755)
        } catch {
            guard error.errorNumber == ErrorNumber.exists else {
                throw ProtectionError(
                    .system(error.errorNumber),
                    "the directory cannot be made: \(SystemErrorText.sentence(error.errorNumber))", path: directory)
            }
        }
        for page in ManualPage.all() {
            try Array(page.text.utf8).withUnsafeBytes { bytes in
                try AtomicFile.replace(
                    directory.appending(page.name), in: currentDirectory, with: bytes, permissions: 0o644,
                    exclusive: false, context.system)
            }
        }
        return .done
    }

    /// Prints the completions of a shell.
    static func completions(_ context: CommandContext) throws -> ExitStatus {
        guard let shell = context.invocation.operands.first?.text.flatMap(CompletionShell.init(rawValue:)) else {
            return .usage
        }
        context.console.result(Completions.script(shell).utf8)
        return .done
    }
}
