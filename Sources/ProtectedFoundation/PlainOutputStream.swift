import FileProtection
import Foundation
import PlainFoundation

/// The stream to a plain file that the initialisers of `OutputStream` make: Foundation's, but that the file is looked at
/// when it is opened, and that this very file is written.
///
/// Like every stream it is for one thread at a time.
final class PlainOutputStream: OutputStream {
    private let url: URL?
    private let shouldAppend: Bool
    /// Foundation's stream: to the path until it is opened, then to the file.
    private var inner: OutputStream
    /// Kept open as long as Foundation's stream has its path.
    private var file: PinnedFile?
    private var wasOpened = false
    private var isClosed = false
    private var refusal: CocoaError?
    private var properties: [(AnyObject?, PropertyKey)] = []
    private var loops: [(RunLoop, RunLoop.Mode)] = []

    /// Nil where Foundation makes no stream.
    init?(to url: URL, append shouldAppend: Bool) {
        guard let inner = OutputStream(plain: url, append: shouldAppend) else { return nil }
        self.url = url
        self.shouldAppend = shouldAppend
        self.inner = inner
        super.init(toMemory: ())
    }

    required init(toMemory: ()) {
        url = nil
        shouldAppend = false
        inner = OutputStream(toMemory: ())
        super.init(toMemory: ())
    }

    override func open() {
        if let url, !wasOpened, !isClosed { prepare(url) }
        wasOpened = true
        if refusal == nil { inner.open() }
    }

    /// Looks at the place again, and takes a stream to what is there.
    private func prepare(_ url: URL) {
        guard let item = Item(pathOf: url) else { return }
        guard !item.needsProtection(nil), item.classAroundLink == .none else { return refuse(item) }
        switch PinnedFile.open(item) {
        case .protected: refuse(item)
        // Foundation's stream says why.
        case .refused: break
        case .pinned(let file):
            guard let stream = OutputStream(plain: URL(fileURLWithPath: file.path), append: shouldAppend) else {
                return refuse(item)
            }
            for (value, key) in properties { _ = stream.setProperty(value, forKey: key) }
            for (loop, mode) in loops {
                inner.remove(from: loop, forMode: mode)
                stream.schedule(in: loop, forMode: mode)
            }
            self.file = file
            inner = stream
        }
    }

    private func refuse(_ item: Item) {
        let error =
            item.problem
            ?? ProtectionError(
                .unsupported, "a stream cannot write what has to be protected", path: item.path)
        refusal = CocoaError(error, .writing, path: url?.path ?? "", url: url)
    }

    override func close() {
        isClosed = true
        inner.close()
        file = nil
    }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength count: Int) -> Int {
        refusal == nil ? inner.write(buffer, maxLength: count) : -1
    }

    override var hasSpaceAvailable: Bool { refusal == nil && inner.hasSpaceAvailable }

    override var streamStatus: Status {
        guard refusal != nil else { return inner.streamStatus }
        return isClosed ? .closed : .error
    }

    override var streamError: (any Error)? {
        if let refusal { return refusal }
        // Foundation's ends the process when there is none.
        return inner.streamStatus == .error ? inner.streamError : nil
    }

    override func property(forKey key: PropertyKey) -> AnyObject? { inner.property(forKey: key) }

    override func setProperty(_ property: AnyObject?, forKey key: PropertyKey) -> Bool {
        if !wasOpened { properties.append((property, key)) }
        return inner.setProperty(property, forKey: key)
    }

    override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        if !wasOpened { loops.append((loop, mode)) }
        inner.schedule(in: loop, forMode: mode)
    }

    override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        loops.removeAll { $0.0 === loop && $0.1 == mode }
        inner.remove(from: loop, forMode: mode)
    }
}
