import Foundation
import PlainFoundation

/// The calls of `FileHandle` that work beside the caller. On every handle but that of a protected file they are
/// Foundation's.
extension FileHandle {
    private var protected: ProtectedFileHandle? { self as? ProtectedFileHandle }

    /// Called on a queue whenever there is something to read; of a protected file, as of every regular one, always.
    public var readabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { protected.map { $0.monitors[.reading] } ?? PlainFoundation.readabilityHandler(self) }
        set {
            if let protected {
                protected.monitors.set(newValue, .reading, of: self)
            } else {
                PlainFoundation.setReadabilityHandler(newValue, self)
            }
        }
    }

    /// Called on a queue whenever something can be written; to a protected file, as to every regular one, always.
    public var writeabilityHandler: (@Sendable (FileHandle) -> Void)? {
        get { protected.map { $0.monitors[.writing] } ?? PlainFoundation.writeabilityHandler(self) }
        set {
            if let protected {
                protected.monitors.set(newValue, .writing, of: self)
            } else {
                PlainFoundation.setWriteabilityHandler(newValue, self)
            }
        }
    }

    /// Reads what is there and posts it as `FileHandle.readCompletionNotification` on the main queue.
    public func readInBackgroundAndNotify() { readInBackgroundAndNotify(forModes: [.default]) }

    /// The same in other modes of the run loop.
    public func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        guard let protected else { return PlainFoundation.readInBackgroundAndNotify(forModes: modes, self) }
        protected.readAndNotify(FileHandle.readCompletionNotification, upTo: 1 << 20, modes)
    }

    /// Reads to the end and posts it as `NSFileHandleReadToEndOfFileCompletion` on the main queue.
    public func readToEndOfFileInBackgroundAndNotify() { readToEndOfFileInBackgroundAndNotify(forModes: [.default]) }

    /// The same in other modes of the run loop.
    public func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        guard let protected else { return PlainFoundation.readToEndOfFileInBackgroundAndNotify(forModes: modes, self) }
        protected.readAndNotify(.NSFileHandleReadToEndOfFileCompletion, upTo: .max, modes)
    }

    /// Posts `NSFileHandleDataAvailable` on the main queue when there is something to read: of a protected file at once.
    public func waitForDataInBackgroundAndNotify() { waitForDataInBackgroundAndNotify(forModes: [.default]) }

    /// The same in other modes of the run loop.
    public func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?) {
        guard let protected else { return PlainFoundation.waitForDataInBackgroundAndNotify(forModes: modes, self) }
        protected.notify(.NSFileHandleDataAvailable, modes) { [:] }
    }
}

extension ProtectedFileHandle {
    /// Reads beside the caller. What could not be read is told by the number that is beneath the error, as Foundation has
    /// it: `EPERM` for what is locked.
    fileprivate func readAndNotify(_ name: Notification.Name, upTo count: Int, _ modes: [RunLoop.Mode]?) {
        DispatchQueue.global().async { [self] in
            let outcome = Result { try content(upTo: count) ?? Data() }
            notify(name, modes) {
                switch outcome {
                case .success(let data): [NSFileHandleNotificationDataItem: data]
                case .failure(let error): ["NSFileHandleError": Self.number(beneath: error)]
                }
            }
        }
    }

    fileprivate func notify(
        _ name: Notification.Name, _ modes: [RunLoop.Mode]?,
        _ information: @escaping @Sendable () -> [String: any Sendable]
    ) {
        DispatchQueue.main.async { [self] in
            let notification = Notification(name: name, object: self, userInfo: information())
            NotificationQueue.default.enqueue(
                notification, postingStyle: .asap, coalesceMask: [], forModes: modes)
        }
    }

    private static func number(beneath error: any Error) -> Int {
        let beneath = (error as? CocoaError)?.userInfo[NSUnderlyingErrorKey] as? any Error
        return beneath.map { ($0 as NSError).code } ?? Int(EIO)
    }
}
