import FileProtection
import Foundation
import PlainFoundation

extension InputStream {
    /// A stream from a file. That of a protected file has its whole content, which is decrypted here and now, in memory.
    ///
    /// Nil when a protected file cannot be read now, and for every file of class complete: a stream would go on yielding its
    /// content after a lock, and cannot say that it is locked. `Data(contentsOf:)` and `FileHandle` read those.
    public convenience init?(url: URL) {
        let file = WholeFile(url, anyScheme: true)
        if file.isHidden { return nil }
        guard file.isProtected else {
            self.init(plain: url)
            return
        }
        guard let data = file.streamContents() else { return nil }
        self.init(data: data)
    }

    /// The same by path.
    public convenience init?(fileAtPath path: String) {
        if path.utf8.contains(0) { return nil }
        self.init(url: URL(fileURLWithPath: path))
    }
}

extension OutputStream: MadeElsewhere {}

extension OutputStream {
    /// A stream to a file. Nil where what is written would have to be protected, or where that cannot be told: a stream
    /// writes plain bytes. `Data.write(to:options:)` and `FileHandle` write protected files.
    ///
    /// The file is looked at again by `open()`. Where it would have to be protected by then, nothing is touched, and the
    /// stream has the status `error` with `CocoaError` 512.
    public convenience init?(url: URL, append shouldAppend: Bool) {
        if WholeFile(url, anyScheme: true).needsProtection { return nil }
        guard let stream = PlainOutputStream(to: url, append: shouldAppend) as? Self else { return nil }
        self.init(made: stream)
    }

    /// The same by path.
    public convenience init?(toFileAtPath path: String, append shouldAppend: Bool) {
        if path.utf8.contains(0) { return nil }
        self.init(url: URL(fileURLWithPath: path), append: shouldAppend)
    }
}
