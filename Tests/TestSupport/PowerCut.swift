import Glibc
import LinuxSystem

/// Which changes that nobody synchronised may survive without which others.
public enum CrashModel: Sendable, Hashable, CaseIterable {
    /// As journalling file systems do it: changes of one directory's names survive in order.
    case orderedNames
    /// Any subset of changes survives, names included. A rename to another directory is safe only when both directories
    /// were synchronised.
    case anySubset
}

/// The disk as one power cut may have left it, made for real in a private directory.
public struct CrashImage: Sendable {
    /// Holds the tree that was recorded. The check may change it.
    public let directory: TemporaryDirectory
    /// So many of the recorded operations had been issued.
    public let operationCount: Int
    /// What had been promised by then, in order.
    public let marks: [String]

    /// Whether this was promised before the power went.
    public func has(_ mark: String) -> Bool { marks.contains(mark) }
}

/// What a simulation found.
public struct PowerCutReport: Sendable, CustomStringConvertible {
    public struct Violation: Sendable, CustomStringConvertible {
        public let model: CrashModel
        public let operationCount: Int
        /// What was lost of the changes that were not synchronised.
        public let lost: [String]
        public let error: String

        public var description: String {
            "after \(operationCount) operations (\(model)): \(error)\n  lost: \(lost.joined(separator: "; "))"
        }
    }

    public let name: String
    public let operations: [RecordedOperation]
    /// Images that were made and checked; none twice.
    public internal(set) var imageCount = 0
    /// Images that were the same as one checked before.
    public internal(set) var duplicateCount = 0
    public internal(set) var violationCount = 0
    /// The first few.
    public internal(set) var violations: [Violation] = []

    /// One line, and for each violation what it takes to understand it.
    public var description: String {
        var text = "power cut: \(name): \(imageCount) images of \(operations.count) operations, "
        text += "\(violationCount) violations"
        guard !violations.isEmpty else { return text }
        for violation in violations { text += "\n" + violation.description }
        for (index, operation) in operations.enumerated() { text += "\n  \(index): \(operation)" }
        return text
    }
}

/// Cuts the power at every point of a recording, in every way that is modelled, and lets a check look at what is left.
///
/// After the first N operations: what an `fsync`, `fdatasync` or `syncfs` among them covers is on the disk. Of the
/// rest, any subset is (see ``CrashModel``), and a write may be there in part: whole sectors of 512 bytes. `fsync` of
/// a file covers its content, size, attributes and permissions; `fdatasync` only content and size, since ext4 does not
/// promise more; `fsync` of a directory covers the names in it. A name does not come with the content of its file.
public struct PowerCut: Sendable {
    /// How far to go.
    public struct Limits: Sendable {
        /// For one N and model: all images when there are no more than this, else this many: none, all, each change
        /// alone missing, each alone there, each torn, and a random choice that is the same each time.
        public var imagesPerPrefix: Int
        public var models: [CrashModel]
        /// Violations to describe in full.
        public var describedViolations: Int
        /// Prints nothing: for simulations inside another one, which counts them.
        public var isQuiet = false

        /// `$CANDADO_CRASH_IMAGES` sets the number for long runs; it is 64 else.
        public init(
            imagesPerPrefix: Int? = nil, models: [CrashModel] = CrashModel.allCases, describedViolations: Int = 3
        ) {
            let wanted = getenv("CANDADO_CRASH_IMAGES").flatMap { Int(String(cString: $0)) }
            self.imagesPerPrefix = imagesPerPrefix ?? wanted ?? 64
            self.models = models
            self.describedViolations = describedViolations
        }
    }

    public struct Unusable: Error, CustomStringConvertible {
        public let description: String
    }

    let start: FileTree
    let operations: [RecordedOperation]
    let marks: [RecordingCalls.Mark]
    private let reach: [Int: Int]
    let limits: Limits

    /// Takes over what was recorded so far. Throws when something could not be followed.
    public init(_ recording: RecordingCalls, _ limits: Limits = Limits()) throws {
        let problems = recording.problems
        guard problems.isEmpty else { throw Unusable(description: problems.joined(separator: "; ")) }
        start = recording.start
        operations = recording.operations
        marks = recording.marks
        reach = recording.reach
        self.limits = limits
    }

    /// Runs `check` on every image; it throws when the image breaks a rule. Prints one line on standard error.
    public func check(_ name: String, _ check: (CrashImage) throws -> Void) throws -> PowerCutReport {
        var report = PowerCutReport(name: name, operations: operations)
        var seen: Set<[Int]> = []
        for model in limits.models {
            let plan = CrashPlan(operations, reach: reach, start, model)
            var base = start
            var applied = 0
            for count in 0...operations.count {
                // What is on the disk for good, up to the first change that is not.
                while applied < count, plan.isDurable(applied, after: count) {
                    base.apply(operations[applied])
                    applied += 1
                }
                let promised = marks.filter { $0.position <= count }.map(\.text)
                let choices = plan.choices(after: count)
                for selection in choices.selections(limit: limits.imagesPerPrefix, seed: UInt64(count)) {
                    var tree = base
                    for index in applied..<count { tree.apply(operations[index], selection: selection, index) }
                    guard seen.insert(tree.fingerprint() + [promised.count]).inserted else {
                        report.duplicateCount += 1
                        continue
                    }
                    report.imageCount += 1
                    do {
                        let directory = try TemporaryDirectory(.memory)
                        try tree.materialise(in: directory.path)
                        try check(CrashImage(directory: directory, operationCount: count, marks: promised))
                    } catch {
                        report.violationCount += 1
                        if report.violations.count < limits.describedViolations {
                            report.violations.append(
                                .init(
                                    model: model, operationCount: count, lost: plan.lost(selection, after: count),
                                    error: "\(error)"))
                        }
                    }
                }
            }
        }
        if !limits.isQuiet {
            Self.say("power cut: \(name): \(report.imageCount) images of \(operations.count) operations")
        }
        return report
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }
}

extension FileTree {
    /// Applies the operation as far as it was selected.
    fileprivate mutating func apply(_ operation: RecordedOperation, selection: [Int: Persistence], _ index: Int) {
        let persistence = selection[index] ?? .all
        if persistence == .none { return }
        apply(operation, persistence)
    }
}
