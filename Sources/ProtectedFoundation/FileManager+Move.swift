import FileProtection
import Foundation
import PlainFoundation

extension FileManager {
    /// Moves an item, as Foundation's call does. Nothing of it changes, in every lock state: not its class, and a plain file
    /// stays plain in a directory with a class. To another file system it is copied as ``copyItem(atPath:toPath:)`` copies,
    /// and the source is removed when all of it is there; then class and lock state decide.
    ///
    /// Throws `CocoaError` on the writing side with both paths. When a delegate lets it replace a protected file, that file
    /// must be readable: what is locked is never replaced. Thread-safe.
    public func moveItem(at srcURL: URL, to dstURL: URL) throws {
        guard srcURL.isFileURL, dstURL.isFileURL, !srcURL.path.isEmpty, !dstURL.path.isEmpty else {
            return try PlainFoundation.moveItem(at: srcURL, to: dstURL, self)
        }
        try moveItem(atPath: srcURL.path, toPath: dstURL.path)
    }

    /// The same by path.
    public func moveItem(atPath srcPath: String, toPath dstPath: String) throws {
        guard let source = Item(srcPath, followsLinks: false), let target = Item(dstPath, followsLinks: false),
            source.isProtected || source.isDirectory || target.isProtected || target.givenClass != .none
        else { return try PlainFoundation.moveItem(atPath: srcPath, toPath: dstPath, self) }
        guard mayMove(srcPath, to: dstPath) else { return }
        let isTaken = (try? PlainFoundation.attributesOfItem(atPath: dstPath, self)) != nil
        if isTaken {
            let taken = ProtectionError(.alreadyExists, "the file exists already", path: target.path)
            let failure = CocoaError(taken, .move, from: srcPath, to: dstPath)
            guard mayProceed(after: failure, moving: srcPath, to: dstPath) else { throw failure }
        }
        do throws(ProtectionError) {
            if target.isProtected { try target.requireReadable() }
            if try Self.rename(source.path, target.path, replacing: isTaken) { return }
        } catch {
            let failure = CocoaError(error, .move, from: srcPath, to: dstPath)
            guard mayProceed(after: failure, moving: srcPath, to: dstPath) else { throw failure }
            return
        }
        try moveByCopying(source, srcPath, target, dstPath, isTaken)
    }

    /// Gives a file another name. False when that lies on another file system.
    static func rename(
        _ source: FilePath, _ target: FilePath, replacing: Bool
    ) throws(ProtectionError) -> Bool {
        let system = Keys.systemCalls
        do throws(SystemError) {
            try system.rename(
                source, in: currentDirectory, to: target, in: currentDirectory,
                replacing: replacing ? .allowed : .forbidden)
            return true
        } catch {
            switch error.errorNumber {
            case EXDEV: return false
            case ErrorNumber.noSystemCall, ErrorNumber.notSupported:
                // A file system that cannot refuse to replace: the name was free a moment ago.
                if !replacing { return try rename(source, target, replacing: true) }
                throw ProtectionError(error, at: source)
            default: throw ProtectionError(error, at: source)
            }
        }
    }

    /// No delegate is asked on the way: what it would leave out of the copy would be removed with the source.
    ///
    /// The copy gets its name when all of it is there and durable, so that nobody else's item is ever removed or mixed with it.
    private func moveByCopying(_ source: Item, _ srcPath: String, _ target: Item, _ dstPath: String, _ isTaken: Bool)
        throws
    {
        do {
            let copy = try CopyAside(beside: target.path)
            try copy.fill(from: source, srcPath)
            // Copying took its time: what is to be replaced may be another now.
            if isTaken, let now = Item(dstPath, followsLinks: false), now.isProtected { try now.requireReadable() }
            try copy.publish(as: target.path, replacing: isTaken)
            try FileManager().removeItem(atPath: srcPath)
        } catch {
            throw Self.moveFailure(error, srcPath, dstPath)
        }
    }

    /// As Foundation has it: the paths of the move, with what went wrong beneath.
    private static func moveFailure(_ error: any Error, _ srcPath: String, _ dstPath: String) -> any Error {
        let mapped = (error as? ProtectionError).map { CocoaError($0, .move, from: srcPath, to: dstPath) } ?? error
        guard let cause = mapped as? CocoaError else { return error }
        if cause.userInfo[CocoaError.protectionErrorKey] != nil {
            // Locked, and the like: beneath is the number, as with every other call.
            var information = cause.userInfo
            information[NSFilePathErrorKey] = srcPath
            information[NSURLErrorKey] = URL(fileURLWithPath: srcPath)
            information["NSSourceFilePathErrorKey"] = srcPath
            information["NSDestinationFilePath"] = dstPath
            information["NSUserStringVariant"] = ["Move"]
            return CocoaError(cause.code, userInfo: information)
        }
        return CocoaError(
            cause.code,
            userInfo: [
                NSFilePathErrorKey: srcPath, "NSDestinationFilePath": dstPath, "NSUserStringVariant": ["Move"],
                NSUnderlyingErrorKey: cause,
            ])
    }
}

extension Item {
    /// Throws when the content of a protected file cannot be read now: then nothing may take its place.
    func requireReadable() throws(ProtectionError) {
        try Keys.protection.open(path, for: .reading).close()
    }
}
