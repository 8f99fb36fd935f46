import Foundation

/// Foundation's own calls, for `ProtectedFoundation`, in which the same names mean its own.
///
/// This module imports Foundation alone, so what is called here is Foundation's.
public enum PlainFoundation {
    /// `Data(contentsOf:options:)`
    public static func contents(of url: URL, _ options: Data.ReadingOptions) throws -> Data {
        try Data(contentsOf: url, options: options)
    }

    /// `Data.write(to:options:)`
    public static func write(_ data: Data, to url: URL, _ options: Data.WritingOptions) throws {
        try data.write(to: url, options: options)
    }
}
