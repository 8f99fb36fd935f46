import LinuxSystem
import ProtectionModel

/// Files whose new forms are written in parallel, made durable together, and then given their names.
final class ConversionBatch {
    /// Files whose new forms wait for one sync at most: a sync of a busy disk takes long, however little it is for. Each
    /// holds two descriptors, of which half of what the process may have are taken at most.
    private let mostFiles: Int
    /// Bytes that wait for one sync at most: the second copy that is ever needed.
    static let mostBytes: Int64 = 256 << 20
    /// Directories that stay open for one batch at most: an eighth of the descriptors.
    private let mostDirectories: Int

    struct File: Sendable {
        let name: FilePath
        let directory: DirectoryHandle
        let path: FilePath
        let size: Int64
        let device: UInt64
        let isOperand: Bool
    }

    private enum Prepared: Sendable {
        case pending(Held)
        case unchanged
        case failed(ProtectionError)
    }

    /// Hands a conversion from the thread that prepared it to the one that publishes it: never in use by both.
    private final class Held: @unchecked Sendable {
        let value: PendingConversion
        init(_ value: PendingConversion) { self.value = value }
    }

    private let conversion: TreeConversion
    private var files: [File] = []
    private var marks: [(directory: DirectoryHandle, path: FilePath)] = []
    private var bytes: Int64 = 0
    private var directories: Set<ObjectIdentifier> = []
    /// Directories, one a file system, with names that are not durable yet; true when it is the only one there.
    private var unsynced: [UInt64: (directory: DirectoryHandle, isOnly: Bool)] = [:]
    private var system: any SystemCalls { conversion.files.system }

    init(_ conversion: TreeConversion) {
        self.conversion = conversion
        mostFiles = max(16, min(4096, conversion.descriptorLimit / 4))
        mostDirectories = max(8, min(1024, conversion.descriptorLimit / 8))
    }

    func add(_ file: File) throws {
        files.append(file)
        bytes += file.size
        directories.insert(ObjectIdentifier(file.directory))
        if files.count >= mostFiles || bytes >= Self.mostBytes { try flush() }
        if directories.count >= mostDirectories { try flush() }
    }

    /// Takes the class off a directory, once all below it is done without a failure: a file that stays protected must
    /// not lose the company of the class for new ones.
    func removeMark(of directory: DirectoryHandle, _ path: FilePath) throws {
        marks.append((directory, path))
        directories.insert(ObjectIdentifier(directory))
        if directories.count >= mostDirectories { try flush() }
    }

    /// Remembers that names or attributes in a directory have to be made durable.
    func touched(_ directory: DirectoryHandle, _ device: UInt64) {
        let isOnly = unsynced[device].map { $0.directory === directory && $0.isOnly } ?? true
        unsynced[device] = (unsynced[device]?.directory ?? directory, isOnly)
    }

    /// Makes all names durable that were given.
    func synchronizeNames() throws {
        let all = unsynced.values
        unsynced = [:]
        for (directory, isOnly) in all {
            if isOnly {
                try system.synchronize(directory.number, dataOnly: false)
            } else {
                try system.synchronizeFileSystem(directory.number)
            }
        }
    }

    /// Converts what has come together.
    func flush() throws {
        var left = files
        let marks = self.marks
        files = []
        self.marks = []
        bytes = 0
        directories = []
        // Where descriptors run out, those that got none wait for the others to give theirs back.
        while !left.isEmpty { left = try convert(left) }
        for (directory, path) in marks where !directory.progress.hasFailed {
            do {
                let present = try StoredRecord.attribute(of: directory.number, system)
                if case .missing = present { continue }
                try StoredRecord.refuseNewer(present)
                try system.removeAttribute(KeyRecord.attributeName, of: directory.number)
                touched(directory, try system.status(directory.number).device)
            } catch {
                directory.progress.fail()
                conversion.report(path, .failed(ProtectionError.from(error, at: path)))
            }
        }
    }

    /// Returns the files that could not even be tried.
    private func convert(_ files: [File]) throws -> [File] {
        var results = prepare(files)
        if conversion.isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
        synchronizeContent(of: files, &results)
        let outOfDescriptors = results.indices.filter { Self.isOutOfDescriptors(results[$0]) }
        // Those wait until the others have given theirs back; when nobody got any, waiting would not help.
        let waiting = outOfDescriptors.count < files.count ? Set(outOfDescriptors) : []
        let ready = files.indices.filter { !waiting.contains($0) }
        for index in ready {
            if case .pending = results[index] { touched(files[index].directory, files[index].device) }
        }
        let prepared = Shared(ready.map { results[$0] })
        results = []
        publish(ready.map { files[$0] }, prepared)
        return waiting.sorted().map { files[$0] }
    }

    private static func isOutOfDescriptors(_ result: Prepared?) -> Bool {
        guard case .failed(let error)? = result else { return false }
        if case .system(let number) = error.code { return ErrorNumber.outOfDescriptors.contains(number) }
        return false
    }

    private func prepare(_ batch: [File]) -> [Prepared?] {
        let keys = BatchedKeys(conversion.files.keys)
        let files = ProtectedFileSystem(
            keys: keys, system: conversion.files.system, excluded: conversion.files.excluded)
        let wanted = conversion.conversion
        keys.prepare(wanted, batch, conversion.files.system)
        let isCancelled = conversion.isCancelled
        let progress = conversion.progress
        let next = Shared(0)
        let prepared = Shared([Prepared?](repeating: nil, count: batch.count))
        WorkerThreads.run(min(WorkerThreads.recommendedCount, batch.count)) { _ in
            while true {
                let index = next.value.withLock { next in
                    defer { next += 1 }
                    return next
                }
                guard index < batch.count, !isCancelled() else { return }
                let file = batch[index]
                let outcome: Prepared
                do {
                    if let pending = try PendingConversion.prepare(
                        file.name, in: file.directory, wanted, files, progress: progress)
                    {
                        outcome = .pending(Held(pending))
                    } else {
                        outcome = .unchanged
                    }
                } catch {
                    outcome = .failed(ProtectionError.from(error, at: file.path))
                }
                prepared.value.withLock { $0[index] = outcome }
            }
        }
        return prepared.value.withLock { $0 }
    }

    /// One sync for each file system. Where it fails, nothing takes its name.
    private func synchronizeContent(of files: [File], _ results: inout [Prepared?]) {
        var pending: [UInt64: [Int]] = [:]
        for (index, result) in results.enumerated() {
            if case .pending = result { pending[files[index].device, default: []].append(index) }
        }
        for indices in pending.values {
            do {
                if indices.count == 1, case .pending(let held)? = results[indices[0]] {
                    try system.synchronize(held.value.descriptor, dataOnly: false)
                } else {
                    try system.synchronizeFileSystem(files[indices[0]].directory.number)
                }
            } catch {
                for index in indices { results[index] = .failed(ProtectionError.from(error, at: files[index].path)) }
            }
        }
    }

    /// Gives the new forms their names, in parallel, and reports in the order of the files. Closing what was replaced
    /// frees its blocks, which takes time.
    private func publish(_ files: [File], _ remaining: Shared<[Prepared?]>) {
        let conversion = self.conversion
        let next = Shared(0)
        let outcomes = Shared([ConversionOutcome.Result?](repeating: nil, count: files.count))
        WorkerThreads.run(min(WorkerThreads.recommendedCount, files.count)) { _ in
            while true {
                let index = next.value.withLock { next in
                    defer { next += 1 }
                    return next
                }
                guard index < files.count else { return }
                let result = remaining.value.withLock { results in
                    defer { results[index] = nil }
                    return results[index]
                }
                let outcome = Self.publish(files[index], result, conversion)
                outcomes.value.withLock { $0[index] = outcome }
            }
        }
        for (file, outcome) in zip(files, outcomes.value.withLock { $0 }) {
            guard let outcome else { continue }
            if case .failed = outcome { file.directory.progress.fail() }
            conversion.report(file.path, outcome)
        }
    }

    private static func publish(
        _ file: File, _ result: Prepared?, _ conversion: TreeConversion
    ) -> ConversionOutcome.Result {
        let outcome: ConversionOutcome.Result
        switch result {
        case .pending(let held):
            do {
                try held.value.publish(conversion.files.system)
                outcome = .changed(
                    from: held.value.classBefore,
                    to: conversion.conversion == .unprotect ? nil : held.value.protectionClass,
                    bytes: held.value.length, writersWereExcluded: held.value.writersWereExcluded)
            } catch {
                outcome = .failed(ProtectionError.from(error, at: file.path))
            }
        case .unchanged:
            var present: ProtectionClass?
            if case .protect = conversion.conversion {
                present = try? conversion.files.protectionClass(of: file.name, in: file.directory.number)
            }
            outcome = .unchanged(present)
        case .failed(let error) where error.code == .system(ErrorNumber.noEntry) && !file.isOperand:
            outcome = .skipped(.vanished)
        case .failed(let error): outcome = .failed(error)
        case nil: outcome = .failed(ProtectionError(.cancelled, "interrupted", path: file.path))
        }
        return outcome
    }
}
