import FileProtection

/// `candado write`
enum WriteCommand {
    private static let input: Int32 = 0

    static func run(_ context: CommandContext) throws -> ExitStatus {
        let path = context.invocation.operands[0].path
        let system = context.system
        guard !context.invocation.operands[0].isDash else {
            throw UsageError(
                "'write' needs the path of a file; '-' is not one", hint: "write './-' for a file of that name")
        }
        // The passcode would be taken out of what is to be written.
        guard try PasscodeSource(context) != .descriptor(input) else {
            throw UsageError("stdin cannot be both the passcode and the content")
        }
        try SameFile.refuse(path, input, "stdin", system)
        let session = try Session(context)
        let wanted = context.invocation.value(.protectionClass)?.text.flatMap { ProtectionClass(name: $0) }
        let begun = Flag()
        let failure = FirstFailure()
        let source = try? system.status(input)
        let progress = ByteProgress(
            context, verb: "writing", total: source.flatMap { $0.kind == .regular ? $0.size : nil })
        defer { progress.finish() }
        do {
            let (length, protectionClass) = try session.unlocking(canRunAgain: { !begun.isSet }) {
                try session.protection.files.write(to: path, class: wanted) { buffer in
                    begun.set()
                    let count = try failure.catching { try fill(buffer, system) }
                    progress.add(count)
                    return count
                }
            }
            session.showWarnings()
            report(path, length, protectionClass, context.console)
        } catch {
            throw failure.error ?? error
        }
        return .done
    }

    /// As many bytes as there are, up to the buffer's size; fewer only at the end.
    private static func fill(_ buffer: UnsafeMutableRawBufferPointer, _ system: any SystemCalls) throws -> Int {
        var count = 0
        while count < buffer.count {
            guard Interrupts.waitForInput(input) else { throw ProtectionError(.cancelled, "interrupted") }
            let more = try system.read(input, into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
            if more == 0 { break }
            count += more
        }
        return count
    }

    private static func report(
        _ path: FilePath, _ length: UInt64, _ protectionClass: ProtectionClass, _ console: Console
    ) {
        guard console.isJSON else { return }
        console.line(
            JSON.document([
                JSON.path(path), .init("class", .string(protectionClass.name)),
                .init("bytes", .integer(Int64(clamping: length))),
            ]))
    }
}
