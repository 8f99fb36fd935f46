import Foundation

/// Foundation's own: this file imports Foundation alone.
struct FoundationFilesCalls: FilesCalls {
    private func manager(_ delegate: (any FileManagerDelegate)? = nil) -> FileManager {
        let manager = FileManager()
        manager.delegate = delegate
        return manager
    }

    func setAttributes(_ attributes: [FileAttributeKey: Any], _ path: String) throws {
        try manager().setAttributes(attributes, ofItemAtPath: path)
    }

    func attributes(_ path: String) throws -> [FileAttributeKey: Any] {
        try manager().attributesOfItem(atPath: path)
    }

    func createFile(_ path: String, _ data: Data?, _ attributes: [FileAttributeKey: Any]?) -> Bool {
        manager().createFile(atPath: path, contents: data, attributes: attributes)
    }

    func contents(_ path: String) -> Data? { manager().contents(atPath: path) }
    func equal(_ first: String, _ second: String) -> Bool { manager().contentsEqual(atPath: first, andPath: second) }

    func copy(_ source: String, _ target: String, _ delegate: (any FileManagerDelegate)?) throws {
        try manager(delegate).copyItem(atPath: source, toPath: target)
    }

    func copy(_ source: URL, _ target: URL) throws { try manager().copyItem(at: source, to: target) }

    func move(_ source: String, _ target: String, _ delegate: (any FileManagerDelegate)?) throws {
        try manager(delegate).moveItem(atPath: source, toPath: target)
    }

    func move(_ source: URL, _ target: URL) throws { try manager().moveItem(at: source, to: target) }
    func link(_ source: String, _ target: String) throws { try manager().linkItem(atPath: source, toPath: target) }

    func makeDirectory(_ path: String, _ intermediates: Bool, _ attributes: [FileAttributeKey: Any]?) throws {
        try manager().createDirectory(
            atPath: path, withIntermediateDirectories: intermediates, attributes: attributes)
    }

    func makeDirectory(_ url: URL, _ intermediates: Bool) throws {
        try manager().createDirectory(at: url, withIntermediateDirectories: intermediates)
    }

    func handle(_ opening: HandleOpening, _ url: URL) throws -> FileHandle {
        switch opening {
        case .reading: try FileHandle(forReadingFrom: url)
        case .writing: try FileHandle(forWritingTo: url)
        case .updating: try FileHandle(forUpdating: url)
        }
    }

    func handle(_ opening: HandleOpening, path: String) -> FileHandle? {
        switch opening {
        case .reading: FileHandle(forReadingAtPath: path)
        case .writing: FileHandle(forWritingAtPath: path)
        case .updating: FileHandle(forUpdatingAtPath: path)
        }
    }

    func perform(_ call: HandleCall, _ handle: FileHandle) throws -> String {
        var result = "done"
        func tell(_ data: Data?) { result = data.map { String(decoding: $0, as: UTF8.self) } ?? "nil" }
        switch call {
        case .readToEnd: tell(try handle.readToEnd())
        case .read(let count): tell(try handle.read(upToCount: count))
        case .write(let text): try handle.write(contentsOf: Data(text.utf8))
        case .offset: result = "\(try handle.offset())"
        case .seek(let offset): try handle.seek(toOffset: offset)
        case .seekToEnd: result = "\(try handle.seekToEnd())"
        case .truncate(let offset): try handle.truncate(atOffset: offset)
        case .synchronize: try handle.synchronize()
        case .close: try handle.close()
        case .olderReadToEnd: tell(handle.readDataToEndOfFile())
        case .olderRead(let count): tell(handle.readData(ofLength: count))
        case .olderWrite(let text): handle.write(Data(text.utf8))
        case .olderOffset: result = "\(handle.offsetInFile)"
        case .olderSeek(let offset): handle.seek(toFileOffset: offset)
        case .olderSeekToEnd: result = "\(handle.seekToEndOfFile())"
        case .olderTruncate(let offset): handle.truncateFile(atOffset: offset)
        case .olderSynchronize: handle.synchronizeFile()
        case .olderClose: handle.closeFile()
        case .availableData: tell(handle.availableData)
        }
        return result
    }

    func values(_ url: URL, _ keys: Set<URLResourceKey>) throws -> String {
        let values = try url.resourceValues(forKeys: keys)
        let named = values.allValues.map { "\($0.key.rawValue)=\($0.value)" }.sorted()
        return named.joined(separator: " ") + " \(values.fileSize as Any) \(values.totalFileSize as Any)"
    }
}
