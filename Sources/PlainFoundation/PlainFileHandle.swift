import Foundation

/// Foundation's own initialisers, under names that nobody shadows.
extension FileHandle {
    public convenience init(plainForReadingFrom url: URL) throws { try self.init(forReadingFrom: url) }
    public convenience init(plainForWritingTo url: URL) throws { try self.init(forWritingTo: url) }
    public convenience init(plainForUpdating url: URL) throws { try self.init(forUpdating: url) }
    public convenience init?(plainForReadingAtPath path: String) { self.init(forReadingAtPath: path) }
    public convenience init?(plainForWritingAtPath path: String) { self.init(forWritingAtPath: path) }
    public convenience init?(plainForUpdatingAtPath path: String) { self.init(forUpdatingAtPath: path) }
}

/// `FileHandle`'s own calls.
extension PlainFoundation {
    public static func readToEnd(_ handle: FileHandle) throws -> Data? { try handle.readToEnd() }

    public static func read(upToCount count: Int, _ handle: FileHandle) throws -> Data? {
        try handle.read(upToCount: count)
    }

    public static func write<Bytes: DataProtocol>(contentsOf data: Bytes, _ handle: FileHandle) throws {
        try handle.write(contentsOf: data)
    }

    public static func offset(_ handle: FileHandle) throws -> UInt64 { try handle.offset() }
    public static func seekToEnd(_ handle: FileHandle) throws -> UInt64 { try handle.seekToEnd() }

    public static func seek(toOffset offset: UInt64, _ handle: FileHandle) throws {
        try handle.seek(toOffset: offset)
    }

    public static func truncate(atOffset offset: UInt64, _ handle: FileHandle) throws {
        try handle.truncate(atOffset: offset)
    }

    public static func synchronize(_ handle: FileHandle) throws { try handle.synchronize() }
    public static func close(_ handle: FileHandle) throws { try handle.close() }
    public static func availableData(_ handle: FileHandle) -> Data { handle.availableData }
    public static func readDataToEndOfFile(_ handle: FileHandle) -> Data { handle.readDataToEndOfFile() }

    public static func readData(ofLength length: Int, _ handle: FileHandle) -> Data {
        handle.readData(ofLength: length)
    }

    public static func write(_ data: Data, _ handle: FileHandle) { handle.write(data) }
    public static func offsetInFile(_ handle: FileHandle) -> UInt64 { handle.offsetInFile }
    public static func seekToEndOfFile(_ handle: FileHandle) -> UInt64 { handle.seekToEndOfFile() }
    public static func seek(toFileOffset offset: UInt64, _ handle: FileHandle) { handle.seek(toFileOffset: offset) }

    public static func truncateFile(atOffset offset: UInt64, _ handle: FileHandle) {
        handle.truncateFile(atOffset: offset)
    }

    public static func synchronizeFile(_ handle: FileHandle) { handle.synchronizeFile() }
    public static func closeFile(_ handle: FileHandle) { handle.closeFile() }

    public static func readabilityHandler(_ handle: FileHandle) -> (@Sendable (FileHandle) -> Void)? {
        handle.readabilityHandler
    }

    public static func setReadabilityHandler(
        _ handler: (@Sendable (FileHandle) -> Void)?, _ handle: FileHandle
    ) {
        handle.readabilityHandler = handler
    }

    public static func writeabilityHandler(_ handle: FileHandle) -> (@Sendable (FileHandle) -> Void)? {
        handle.writeabilityHandler
    }

    public static func setWriteabilityHandler(
        _ handler: (@Sendable (FileHandle) -> Void)?, _ handle: FileHandle
    ) {
        handle.writeabilityHandler = handler
    }

    public static func readInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?, _ handle: FileHandle) {
        handle.readInBackgroundAndNotify(forModes: modes)
    }

    public static func readToEndOfFileInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?, _ handle: FileHandle) {
        handle.readToEndOfFileInBackgroundAndNotify(forModes: modes)
    }

    public static func waitForDataInBackgroundAndNotify(forModes modes: [RunLoop.Mode]?, _ handle: FileHandle) {
        handle.waitForDataInBackgroundAndNotify(forModes: modes)
    }
}
