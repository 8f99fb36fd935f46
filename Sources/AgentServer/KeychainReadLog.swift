import KeychainModel
import LinuxSystem
import Synchronization

/// The log of reads of secrets: `docs/formats/read-log.md`. One line of JSON each, in a file of mode 0600 that is moved aside
/// at 1 MiB; four older ones are kept. A line that cannot be written is lost, and the agent's log says so: no read fails for
/// it. Thread-safe.
final class KeychainReadLog: Sendable {
    static let fileName: FilePath = "keychain-reads.log"
    /// Bytes after which a file is moved aside.
    static let rotationSize: Int64 = 1 << 20
    /// Older files that are kept.
    static let olderFiles = 4

    private struct File {
        var descriptor: Int32?
        /// Which file it is.
        var mark: FileMark?
        var size: Int64 = 0
        /// True once the log was told of trouble, until a line could be written again.
        var hasComplained = false
    }

    private let path: FilePath
    private let system: any SystemCalls
    private let clock: any SystemClock
    private let log: AgentLog
    private let enabled: Atomic<Bool>
    private let file = Mutex(File())

    init(
        in directory: FilePath, isEnabled: Bool, log: AgentLog, system: any SystemCalls, clock: any SystemClock
    ) {
        path = directory.appending(Self.fileName)
        enabled = Atomic(isEnabled)
        self.log = log
        self.system = system
        self.clock = clock
    }

    deinit { if let descriptor = file.withLock({ $0.descriptor }) { try? system.close(descriptor) } }

    /// Whether reads are logged: a setting of the home.
    var isEnabled: Bool {
        get { enabled.load(ordering: .relaxed) }
        set { enabled.store(newValue, ordering: .relaxed) }
    }

    /// The line for one item whose secret is handed over; nil when nobody wants it.
    func line(_ result: ItemResult, by identity: CallerIdentity, _ process: Int32) -> String? {
        guard isEnabled else { return nil }
        return line(identity, process) + Self.name(result)
            + ",\"item\":\"\(Self.hexadecimal(result.reference.identifier))\",\"group\":"
            + Self.quoted(result.accessGroup) + ",\"result\":\"read\"}\n"
    }

    /// The line for a request for secrets that failed; nil when nobody wants it.
    func line(_ error: KeychainError, to identity: CallerIdentity, _ process: Int32) -> String? {
        guard isEnabled else { return nil }
        return line(identity, process) + ",\"result\":\"\(error.code.rawValue)\"}\n"
    }

    /// Writes lines. Waits for the disk.
    func write(_ lines: [String]) {
        for line in lines { write(line) }
    }

    private func line(_ identity: CallerIdentity, _ process: Int32) -> String {
        "{\"time\":\"\(UTCTime(clock.secondsSinceEpoch))\",\"process\":\(process),\"executable\":"
            + Self.quoted(CallerIdentification.text(identity.executable)) + ",\"unit\":" + Self.quoted(identity.unit)
            + ",\"caller\":" + Self.quoted(identity.caller.accessGroups.first ?? "")
    }

    private static func name(_ result: ItemResult) -> String {
        guard let digest = result.nameDigest else { return "" }
        let bytes = [digest.high, digest.low].flatMap { number in
            withUnsafeBytes(of: number.bigEndian) { Array($0) }
        }
        return ",\"name\":\"\(hexadecimal(bytes))\""
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// A text of JSON in printable ASCII and what is beyond it, so that no name can break a line.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\" + String(scalar)
            case " "..."~": result.unicodeScalars.append(scalar)
            case _
            where scalar.value >= 0xA0 && scalar.properties.generalCategory != .lineSeparator
                && scalar.properties.generalCategory != .paragraphSeparator:
                result.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
            }
        }
        return result + "\""
    }

    // MARK: The file

    private func write(_ line: String) {
        let bytes = Array(line.utf8)
        let trouble: SystemError? = file.withLock { file in
            do throws(SystemError) {
                try write(bytes, &file)
                file.hasComplained = false
                return nil
            } catch {
                close(&file)
                guard !file.hasComplained else { return nil }
                file.hasComplained = true
                return error
            }
        }
        if let trouble { log.warning("reads of the keychain cannot be logged: \(trouble)") }
    }

    private func write(_ bytes: [UInt8], _ file: inout File) throws(SystemError) {
        let opened = try opened(&file)
        var descriptor = opened
        if file.size > 0, file.size + Int64(bytes.count) > Self.rotationSize {
            close(&file)
            try moveAside()
            descriptor = try self.opened(&file)
        }
        try bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try system.writeFully(descriptor, bytes) }
        }.get()
        file.size += Int64(bytes.count)
    }

    private func opened(_ file: inout File) throws(SystemError) -> Int32 {
        if let descriptor = file.descriptor {
            // Somebody may have removed or replaced it: lines belong where its name leads.
            let status = try? system.status(of: path, in: currentDirectory, followLinks: false)
            if let status, FileMark(device: status.device, inode: status.inode) == file.mark { return descriptor }
            close(&file)
        }
        let opened = try system.openFile(path, [.write, .append, .create, .noFollow, .nonBlocking])
        let status = try system.status(opened.number)
        guard status.kind == .regular else {
            throw SystemError(call: "open", errorNumber: ErrorNumber.invalidArgument, path: path)
        }
        try system.changePermissions(opened.number, to: 0o600)
        let number = opened.release()
        file.descriptor = number
        file.mark = FileMark(device: status.device, inode: status.inode)
        file.size = status.size
        return number
    }

    private func close(_ file: inout File) {
        if let descriptor = file.descriptor { try? system.close(descriptor) }
        file.descriptor = nil
    }

    private func older(_ number: Int) -> FilePath {
        number == 0 ? path : FilePath(unchecked: path.bytes + Array(".\(number)".utf8))
    }

    private func moveAside() throws(SystemError) {
        for number in stride(from: Self.olderFiles - 1, through: 0, by: -1) {
            do throws(SystemError) {
                try system.rename(
                    older(number), in: currentDirectory, to: older(number + 1), in: currentDirectory,
                    replacing: .allowed)
            } catch {
                guard error.errorNumber == ErrorNumber.noEntry else { throw error }
            }
        }
    }
}
