import FileProtection
import Foundation
import PlainFoundation

extension Data {
    /// Reads a file, as Foundation's call does; one that is protected only while its class can be read. A protected file is
    /// never mapped, whatever the options: its content is decrypted into memory of its own.
    ///
    /// Throws `CocoaError`: 257 with `EPERM` beneath when the file is locked. Thread-safe.
    public init(contentsOf url: __shared URL, options: Data.ReadingOptions = []) throws {
        let url = copy url
        self = try WholeFile(url).read({ try PlainFoundation.contents(of: url, options) }, { $0 })
    }

    /// Writes a file, as Foundation's call does; when a protection class is among the options, or the file that is replaced
    /// or the directory has one, the file is protected, atomically and durably.
    ///
    /// The protection options are one choice of five, not flags: several at once are an error, and nothing is written.
    /// Throws `CocoaError`: 513 with `EPERM` beneath when the class, or the file that would be replaced, is locked.
    /// Thread-safe.
    public func write(to url: URL, options: Data.WritingOptions = []) throws {
        try WholeFile(url).write(self, options) { try PlainFoundation.write(self, to: url, options) }
    }
}
