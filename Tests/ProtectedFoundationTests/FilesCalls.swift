import Foundation

/// The calls that are compared: Foundation's own, and those of this package that stand in their place.
protocol FilesCalls: Sendable {
    func setAttributes(_ attributes: [FileAttributeKey: Any], _ path: String) throws
    func attributes(_ path: String) throws -> [FileAttributeKey: Any]
    func createFile(_ path: String, _ data: Data?, _ attributes: [FileAttributeKey: Any]?) -> Bool
    func contents(_ path: String) -> Data?
    func equal(_ first: String, _ second: String) -> Bool
    func copy(_ source: String, _ target: String, _ delegate: (any FileManagerDelegate)?) throws
    func copy(_ source: URL, _ target: URL) throws
    func move(_ source: String, _ target: String, _ delegate: (any FileManagerDelegate)?) throws
    func move(_ source: URL, _ target: URL) throws
    func link(_ source: String, _ target: String) throws
    func makeDirectory(_ path: String, _ intermediates: Bool, _ attributes: [FileAttributeKey: Any]?) throws
    func makeDirectory(_ url: URL, _ intermediates: Bool) throws
    func handle(_ opening: HandleOpening, _ url: URL) throws -> FileHandle
    func handle(_ opening: HandleOpening, path: String) -> FileHandle?
    func perform(_ call: HandleCall, _ handle: FileHandle) throws -> String
    func values(_ url: URL, _ keys: Set<URLResourceKey>) throws -> String
}

enum HandleOpening: CaseIterable, Sendable {
    case reading
    case writing
    case updating
}

/// One call on a handle.
enum HandleCall: Sendable {
    case readToEnd
    case read(Int)
    case write(String)
    case offset
    case seek(UInt64)
    case seekToEnd
    case truncate(UInt64)
    case synchronize
    case close
    case olderReadToEnd
    case olderRead(Int)
    case olderWrite(String)
    case olderOffset
    case olderSeek(UInt64)
    case olderSeekToEnd
    case olderTruncate(UInt64)
    case olderSynchronize
    case olderClose
    case availableData
}
