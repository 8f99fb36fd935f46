import Glibc
import LinuxSystem
import ProtectedFiles
import ProtectionModel

/// Looks at the entries of batches, one thread's share of an audit: counts them and writes what the report says of them.
struct EntryInspector {
    /// No container is shorter than its two header slots, so a shorter file with a record needs a closer look; and a
    /// shorter one without a record than a container's magic number needs none.
    private static let smallestContainer: Int64 = 1024
    private static let magicSize: Int64 = 8
    private static let headerSlotSize: Int64 = 512

    /// Bytes of room for the attribute: the kernel clears as many for each call, and no record is longer.
    static let valueSize = 128

    private let system: any SystemCalls
    private let options: Audit.Options
    private let format: any AuditFormat
    private let showsEveryEntry: Bool
    /// Room for the attribute.
    private let value: UnsafeMutableRawBufferPointer
    private let home: KeybagClaim?

    private var totals = AuditSummary()
    private var text: [UInt8] = []
    private var failures: [ProtectionError] = []

    // Protected files without findings are counted here, by class, and by keybag as long as it stays the same.
    private var good = [AuditCount](repeating: AuditCount(), count: ProtectionClass.allCases.count + 1)
    private var keybag: (claim: KeybagClaim, identifier: KeybagIdentifier)?
    private var keybagFiles: UInt64 = 0

    /// `value` is scratch memory of ``valueSize`` bytes that lives as long as this does.
    init(
        _ options: Audit.Options, _ format: any AuditFormat, _ value: UnsafeMutableRawBufferPointer,
        _ system: any SystemCalls
    ) {
        self.options = options
        self.format = format
        self.value = value
        self.system = system
        showsEveryEntry = format.showsEveryEntry
        home = options.keybag.map { KeybagClaim($0) }
    }

    /// Looks at all entries of a batch.
    mutating func inspect(_ batch: WalkBatch) {
        for part in batch.parts {
            switch part {
            case .entries(let listing, let range, let directory, let path):
                let device = directory?.status.device
                for index in range {
                    inspect(
                        listing.name(index), listing.kind(index), in: directory?.number ?? currentDirectory, path: path,
                        device: device)
                }
            case .directory(let directory, let path): inspectDirectory(directory, path)
            case .skipped(let reason, let path): skip(reason, path)
            case .failed(let error, let path): fail(error, path)
            }
        }
    }

    /// Gives away what the report says since this was last asked, and what failed, in order.
    mutating func take() -> (text: [UInt8], failures: [ProtectionError]) {
        defer {
            text = []
            failures = []
        }
        return (text, failures)
    }

    /// The totals of everything that this value saw.
    mutating func finish() -> AuditSummary {
        for protectionClass in ProtectionClass.allCases {
            totals.add(good[Int(protectionClass.rawValue)], of: protectionClass)
        }
        totals.count(keybag?.identifier, keybagFiles)
        return totals
    }

    // MARK: - One entry

    private mutating func inspect(
        _ name: UnsafePointer<CChar>, _ kind: FileStatus.Kind?, in directory: Int32, path: [UInt8], device: UInt64?
    ) {
        if kind == .symbolicLink { return skip(.symbolicLink, path, name) }
        if kind == .special { return skip(.special, path, name) }
        var findings: AuditFindings = []
        switch Self.ownName(name) {
        case .capsule: return skip(.recoveryCapsule, path, name)
        case .temporary: findings = .leftover
        case nil: break
        }
        do throws(SystemError) {
            let status: FileStatus
            let attribute: Attribute
            if kind == nil {
                status = try system.status(ofName: name, in: directory)
                switch status.kind {
                case .symbolicLink: return skip(.symbolicLink, path, name)
                case .special: return skip(.special, path, name)
                case .directory: return skip(.vanished, path, name)
                case .regular: break
                }
                attribute = try self.attribute(name, in: directory)
            } else {
                attribute = try self.attribute(name, in: directory)
                status = try system.status(ofName: name, in: directory)
            }
            if let device, status.device != device, !options.crossesFileSystems {
                return skip(.otherFileSystem, path, name)
            }
            switch attribute {
            case .good(let claim) where status.size >= Self.smallestContainer && !options.comparesHeaders:
                count(claim, status, findings, path, name)
            case .missing where status.size < Self.magicSize:
                add(
                    AuditedFile(
                        state: .plain, bytes: status.size, allocated: status.blocks &* 512,
                        findings: findings.union(.plain)), Self.join(path, name))
            default: inspectClosely(name, in: directory, status, attribute, findings, path)
            }
        } catch {
            if error.errorNumber == ErrorNumber.noEntry { return skip(.vanished, path, name) }
            let full = Self.join(path, name)
            fail(TreeWalker.failure(error, FilePath(bytes: full) ?? .current), full)
        }
    }

    private enum Attribute {
        case missing
        case bad
        case good(RecordClaim)
    }

    /// The attribute of a file; one with a directory's record is bad.
    private func attribute(_ name: UnsafePointer<CChar>, in directory: Int32) throws(SystemError) -> Attribute {
        do throws(SystemError) {
            guard
                let count = try system.attribute(KeyRecord.attributeName, ofName: name, in: directory, into: value)
            else { return .missing }
            guard let claim = RecordClaim(UnsafeRawBufferPointer(rebasing: value[..<count])), !claim.isDirectory
            else { return .bad }
            return .good(claim)
        } catch {
            // Longer than any record.
            if error.errorNumber == ErrorNumber.tooBig { return .bad }
            throw error
        }
    }

    /// The ordinary case: a protected file whose attribute is good, and whose content is not looked at.
    private mutating func count(
        _ claim: RecordClaim, _ status: FileStatus, _ findings: AuditFindings, _ path: [UInt8],
        _ name: UnsafePointer<CChar>
    ) {
        if claim.keybag != keybag?.claim {
            guard let identifier = claim.keybag.identifier else { return }
            totals.count(keybag?.identifier, keybagFiles)
            keybagFiles = 0
            keybag = (claim.keybag, identifier)
        }
        let isForeign = home != nil && home != claim.keybag
        let hasFindings = isForeign || !findings.isEmpty || claim.flags.contains(.keyWasWeaker)
        if !hasFindings {
            good[Int(claim.protectionClass.rawValue)].add(bytes: status.size, allocated: status.blocks &* 512)
            keybagFiles += 1
            guard showsEveryEntry else { return }
        }
        var file = AuditedFile(
            state: isForeign ? .foreign : .protected, protectionClass: claim.protectionClass,
            keybag: keybag?.identifier, place: .attribute, bytes: status.size, allocated: status.blocks &* 512,
            findings: findings)
        if claim.flags.contains(.keyWasWeaker) { file.findings.insert(.keyWasWeaker) }
        if isForeign { file.findings.insert(.foreign) }
        if hasFindings {
            add(file, Self.join(path, name))
        } else {
            show(.inspected(file), Self.join(path, name))
        }
    }

    /// Everything else: a file without a good attribute, or one whose header is to be compared.
    private mutating func inspectClosely(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ status: FileStatus, _ attribute: Attribute,
        _ findings: AuditFindings, _ path: [UInt8]
    ) {
        let full = Self.join(path, name)
        var inspection: FileInspection
        do throws(ProtectionError) {
            inspection = try FileInspection.inspect(
                FilePath(copying: name), in: directory, keybag: options.keybag, comparingHeaders: true, system)
        } catch {
            if error.code == .system(ErrorNumber.noEntry) { return skip(.vanished, full) }
            var error = error
            error.path = FilePath(bytes: full)
            return fail(error, full)
        }
        // Exchanged meanwhile for something that the walk did not find there.
        if inspection.state == .directory { return skip(.vanished, full) }
        if inspection.place == .attribute, status.size < Self.headerSlotSize {
            inspection = FileInspection(
                state: .damaged, problem: .damaged(.header),
                message: "the file has a key record, but its content is cut off within the header")
        }
        var file = AuditedFile(
            state: inspection.state, protectionClass: inspection.protectionClass, keybag: inspection.record?.keybag,
            place: inspection.place, bytes: status.size, allocated: status.blocks &* 512, findings: findings)
        switch inspection.state {
        case .plain: file.findings.insert(.plain)
        case .damaged:
            file.findings.insert(.damaged)
            file.problem = Self.problem(inspection, full)
        case .foreign: file.findings.insert(.foreign)
        case .unsupported: file.problem = Self.problem(inspection, full)
        case .protected, .directory: break
        }
        if inspection.record?.flags.contains(.keyWasWeaker) == true { file.findings.insert(.keyWasWeaker) }
        switch inspection.place {
        case .header:
            if case .good = attribute {
                file.findings.insert(.recordDiffers)
            } else {
                file.findings.insert(.attributeLost)
            }
        case .attribute: file.findings.insert(.recordDiffers)
        case .both, nil: break
        }
        add(file, full)
    }

    private mutating func inspectDirectory(_ directory: WalkedDirectory, _ path: [UInt8]) {
        var file = AuditedFile(state: .directory)
        do throws(SystemError) {
            if let count = try system.attribute(KeyRecord.attributeName, of: directory.number, into: value) {
                let bytes = UnsafeRawBufferPointer(rebasing: value[..<count])
                if let claim = RecordClaim(bytes), claim.isDirectory {
                    file.protectionClass = claim.protectionClass
                    file.keybag = claim.keybag.identifier
                    file.place = .attribute
                } else {
                    file = Self.damagedDirectory(bytes, path)
                }
            }
        } catch {
            guard error.errorNumber == ErrorNumber.tooBig else {
                return fail(TreeWalker.failure(error, FilePath(bytes: path) ?? .current), path)
            }
            file = Self.damagedDirectory(UnsafeRawBufferPointer(start: nil, count: 0), path)
        }
        add(file, path)
    }

    private static func damagedDirectory(_ bytes: UnsafeRawBufferPointer, _ path: [UInt8]) -> AuditedFile {
        var problem = ProtectionError(.damaged(.record), "the directory has the key record of a file")
        do throws(ProtectionError) { _ = try KeyRecord(decoding: bytes) } catch { problem = error }
        problem.path = FilePath(bytes: path)
        if problem.code == .needsNewerVersion { return AuditedFile(state: .unsupported, problem: problem) }
        return AuditedFile(state: .damaged, findings: .damaged, problem: problem)
    }

    // MARK: - Counting and reporting

    private mutating func add(_ file: AuditedFile, _ path: [UInt8]) {
        totals.add(file)
        // Nothing can be said of what a newer version wrote: it is listed with what could not be done.
        if file.state == .unsupported {
            totals.failed += 1
            if let problem = file.problem { failures.append(problem) }
        }
        if showsEveryEntry || file.state == .unsupported || !file.findings.isEmpty { show(.inspected(file), path) }
    }

    private mutating func skip(_ reason: AuditSkip, _ directory: [UInt8], _ name: UnsafePointer<CChar>) {
        totals.skipped[reason, default: 0] += 1
        if showsEveryEntry { show(.skipped(reason), Self.join(directory, name)) }
    }

    private mutating func skip(_ reason: AuditSkip, _ path: [UInt8]) {
        totals.skipped[reason, default: 0] += 1
        if showsEveryEntry { show(.skipped(reason), path) }
    }

    private mutating func fail(_ error: ProtectionError, _ path: [UInt8]) {
        totals.failed += 1
        failures.append(error)
        show(.failed(error), path)
    }

    private mutating func show(_ outcome: AuditEntry.Outcome, _ path: [UInt8]) {
        format.append(AuditEntry(path: FilePath(bytes: path) ?? .current, outcome: outcome), to: &text)
    }

    private static func problem(_ inspection: FileInspection, _ path: [UInt8]) -> ProtectionError {
        ProtectionError(
            inspection.problem ?? .unsupported, inspection.message ?? "the file cannot be judged",
            path: FilePath(bytes: path))
    }

    /// The path of a name in a directory; an operand's name is its path.
    private static func join(_ directory: [UInt8], _ name: UnsafePointer<CChar>) -> [UInt8] {
        let slash = UInt8(ascii: "/")
        let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
        guard let last = directory.last else { return Array(bytes) }
        var path: [UInt8] = []
        path.reserveCapacity(directory.count + 1 + bytes.count)
        path += directory
        if last != slash { path.append(slash) }
        path += bytes
        return path
    }

    private enum OwnName {
        case capsule
        case temporary
    }

    /// What Candado itself may have put under this name.
    private static func ownName(_ name: UnsafePointer<CChar>) -> OwnName? {
        var last = name
        if let slash = strrchr(name, Int32(UInt8(ascii: "/"))) { last = UnsafePointer(slash) + 1 }
        // Hidden names only, so that the others cost one comparison.
        guard last[0] == CChar(bitPattern: UInt8(ascii: ".")) else { return nil }
        let component = FilePath(copying: last)
        if component == RecoveryCapsuleFile.name { return .capsule }
        return StagedFile.isTemporaryName(component) ? .temporary : nil
    }
}
