import LinuxSystem
import ProtectionModel

/// Visits a tree depth first, without recursion and with a bounded number of open directories, however deep it is.
///
/// Every name is opened relative to the open directory that holds it, so that nobody can lead the walk elsewhere by
/// moving a directory or putting a link in the way.
final class TreeWalk {
    /// Directories on the way down that stay open; those above them are opened again on the way back.
    private static let openDirectories = 32

    private struct Frame {
        /// Nil while it is one of those that are opened again.
        var handle: DirectoryHandle?
        let identity: FileIdentity
        let path: FilePath
        let progress: DirectoryProgress
        let entries: [DirectoryEntry]
        var next = 0
    }

    private let conversion: TreeConversion
    private let batch: ConversionBatch
    private let device: UInt64
    private var frames: [Frame] = []
    private var system: any SystemCalls { conversion.files.system }

    init(_ conversion: TreeConversion, _ batch: ConversionBatch, device: UInt64) {
        self.conversion = conversion
        self.batch = batch
        self.device = device
    }

    /// Walks the directory at a path.
    func run(_ path: FilePath) throws {
        try enter(path, path, in: currentDirectory)
        while let frame = frames.last, let handle = frame.handle {
            if conversion.isCancelled() { throw ProtectionError(.cancelled, "interrupted") }
            guard frame.next < frame.entries.count else {
                try leave(frame, handle)
                continue
            }
            frames[frames.count - 1].next += 1
            let entry = frame.entries[frame.next]
            try visit(entry.name, frame.path.appending(entry.name), handle)
        }
    }

    private func visit(_ name: FilePath, _ path: FilePath, _ directory: DirectoryHandle) throws {
        let status: FileStatus
        do throws(SystemError) {
            status = try system.status(of: name, in: directory.number, followLinks: false)
        } catch {
            return fail(path, directory.progress, error)
        }
        guard status.kind == .directory else {
            return try conversion.consider(path, name, directory, status, isOperand: false, batch)
        }
        if conversion.options.excluded.contains(FileIdentity(status)) {
            return conversion.report(path, .skipped(.ownHome))
        }
        if status.device != device, !conversion.options.crossesFileSystems {
            return conversion.report(path, .skipped(.otherFileSystem))
        }
        try enter(path, name, in: directory.number)
    }

    /// Opens a directory, gives it its class, and lists it.
    private func enter(_ path: FilePath, _ name: FilePath, in directory: Int32) throws {
        let parent = frames.last?.progress
        let progress = DirectoryProgress(parent)
        do {
            let handle = try open(name, in: directory, progress)
            let status = try system.status(handle.number)
            let entries = try system.entries(handle.number)
            if isHome(entries) {
                let result: ConversionOutcome.Result =
                    parent == nil ? .failed(TreeConversion.isOwnHome) : .skipped(.keybagHome)
                return conversion.report(path, result)
            }
            try mark(handle, status.device)
            frames.append(
                Frame(
                    handle: handle, identity: FileIdentity(status), path: path, progress: progress,
                    entries: entries.sorted { $0.inode < $1.inode }))
        } catch {
            guard parent != nil else { throw error }
            return fail(path, progress, error)
        }
        let far = frames.count - 1 - Self.openDirectories
        if far >= 0 { frames[far].handle = nil }
    }

    private func isHome(_ entries: [DirectoryEntry]) -> Bool {
        let marks = conversion.options.homeMarks
        guard !marks.isEmpty else { return false }
        let known = marks.reduce(into: Set<FilePath>()) { $0.formUnion($1) }
        let present = Set(entries.lazy.map(\.name).filter(known.contains))
        return marks.contains { $0.isSubset(of: present) }
    }

    /// Where descriptors have run out, the batch gives its own back first.
    private func open(_ name: FilePath, in directory: Int32, _ progress: DirectoryProgress) throws -> DirectoryHandle {
        do throws(SystemError) {
            return DirectoryHandle(
                try system.openFile(name, in: directory, [.read, .directory, .noFollow]), progress: progress)
        } catch {
            guard ErrorNumber.outOfDescriptors.contains(error.errorNumber) else { throw error }
            try batch.flush()
            return DirectoryHandle(
                try system.openFile(name, in: directory, [.read, .directory, .noFollow]), progress: progress)
        }
    }

    /// Goes back to the directory above, which may have to be opened again.
    private func leave(_ frame: Frame, _ handle: DirectoryHandle) throws {
        if conversion.conversion == .unprotect, conversion.options.marksDirectories {
            try batch.removeMark(of: handle, frame.path)
        }
        frames.removeLast()
        guard let above = frames.last, above.handle == nil else { return }
        do {
            let again = try open("..", in: handle.number, above.progress)
            guard FileIdentity(try system.status(again.number)) == above.identity else {
                throw ProtectionError(.busy, "the directory was moved while it was walked")
            }
            frames[frames.count - 1].handle = again
        } catch {
            // Nobody knows the way back: the rest waits for the next run.
            fail(above.path, above.progress, error)
            frames = []
        }
    }

    /// Gives a directory the class for new files.
    private func mark(_ handle: DirectoryHandle, _ device: UInt64) throws {
        guard conversion.options.marksDirectories, case .protect(let wanted?) = conversion.conversion else { return }
        let record = KeyRecord(directory: wanted, keybag: conversion.files.keys.keybagIdentifier)
        let present = try StoredRecord.attribute(of: handle.number, system)
        if case .good(record) = present { return }
        try StoredRecord.refuseNewer(present)
        try conversion.files.stampRecord(record, handle.number)
        batch.touched(handle, device)
    }

    private func fail(_ path: FilePath, _ progress: DirectoryProgress, _ error: any Error) {
        let error = ProtectionError.from(error, at: path)
        if error.code == .system(ErrorNumber.noEntry) {
            return conversion.report(path, .skipped(.vanished))
        }
        progress.fail()
        conversion.report(path, .failed(error))
    }
}
