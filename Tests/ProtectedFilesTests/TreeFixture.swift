import Keybag
import LinuxSystem
import ProtectionModel
import Synchronization
import TestSupport

@testable import ProtectedFiles

/// What a conversion reported, by path relative to the tree.
final class TreeOutcomes: Sendable {
    private let results = Mutex<[(path: FilePath, result: ConversionOutcome.Result)]>([])

    func add(_ outcome: ConversionOutcome) { results.withLock { $0.append((outcome.path, outcome.result)) } }

    /// The last components of the paths and a word for each result, sorted.
    var words: [String] { all.map { "\($0.path.lastComponent): \(Self.word($0.result))" }.sorted() }
    var all: [(path: FilePath, result: ConversionOutcome.Result)] { results.withLock { $0 } }
    var codes: [ProtectionError.Code] {
        all.compactMap { if case .failed(let error) = $0.result { error.code } else { nil } }
    }

    func count(_ word: String) -> Int { all.count { Self.word($0.result).hasPrefix(word) } }

    static func word(_ result: ConversionOutcome.Result) -> String {
        switch result {
        case .changed(_, _, _, let wereExcluded): wereExcluded ? "changed" : "changed, not checked"
        case .unchanged(let present): "unchanged " + (present?.name ?? "plain")
        case .skipped(let reason): "skipped, \(reason)"
        case .failed(let error): "failed, \(error.message)"
        }
    }
}

/// A script that went wrong.
struct ShellFailure: Error, CustomStringConvertible { let description: String }

extension FilesFixture {
    /// Converts a path and returns what was reported.
    @discardableResult
    func convert(
        _ path: FilePath, _ conversion: Conversion, recursive: Bool = true,
        system: any SystemCalls = LinuxSystemCalls.shared, excluded: Set<FileIdentity> = [], crossing: Bool = false,
        descriptorLimit: Int? = nil, isCancelled: @escaping @Sendable () -> Bool = { false },
        outcomes: TreeOutcomes = TreeOutcomes()
    ) throws -> TreeOutcomes {
        var options = TreeConversion.Options()
        options.recursive = recursive
        options.excluded = excluded
        options.crossesFileSystems = crossing
        var tree = TreeConversion(
            ProtectedFileSystem(keys: keybag, system: system), conversion, options: options, isCancelled: isCancelled
        ) { outcomes.add($0) }
        if let descriptorLimit { tree.descriptorLimit = descriptorLimit }
        try tree.run(path)
        return outcomes
    }

    func status(_ path: FilePath) throws -> FileStatus {
        try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)
    }

    /// Every name below the files' directory.
    func names(in directory: FilePath = "files") throws -> [String] { try self.directory.names(in: directory) }

    func shell(_ script: String) throws {
        let result = try Command.run("sh", ["-ec", script], directory: path("."))
        guard result.status == 0 else { throw ShellFailure(description: "\(script): \(result.errorText)") }
    }

    func output(_ script: String) throws -> String {
        try Command.run("sh", ["-ec", script], directory: path(".")).outputText
    }
}
