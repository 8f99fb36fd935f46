import LinuxSystem

/// Names one file within a recording, whatever its names are and were. The root directory is 0.
public typealias FileNumber = Int

/// One change on disk, or one synchronisation, as it happened.
public enum RecordedOperation: Sendable, Hashable {
    /// A file or directory came to be; a name follows, if it has one.
    case create(FileNumber, isDirectory: Bool, permissions: UInt32)
    /// A directory got a name for a file.
    case enter(directory: FileNumber, name: FilePath, file: FileNumber)
    /// A directory lost a name.
    case remove(directory: FileNumber, name: FilePath)
    /// A file moved from one name to another; `exchanged` went the other way.
    case rename(
        FileNumber, fromDirectory: FileNumber, from: FilePath, toDirectory: FileNumber, to: FilePath,
        exchanged: FileNumber?)
    case write(FileNumber, offset: Int64, bytes: [UInt8])
    case resize(FileNumber, length: Int64)
    /// Room was set aside: the file is at least so long.
    case extend(FileNumber, length: Int64)
    case setAttribute(FileNumber, name: String, value: [UInt8])
    case removeAttribute(FileNumber, name: String)
    case changePermissions(FileNumber, UInt32)
    /// `fsync`, or `fdatasync` with `dataOnly`.
    case synchronize(FileNumber, dataOnly: Bool)
    /// `syncfs`
    case synchronizeAll

    /// The directories whose names it changes.
    var directories: [FileNumber] {
        switch self {
        case .enter(let directory, _, _), .remove(let directory, _): [directory]
        case .rename(_, let from, _, let to, _, _): from == to ? [from] : [from, to]
        default: []
        }
    }

    /// The file whose content, size, attributes or permissions it changes.
    var changedFile: FileNumber? {
        switch self {
        case .write(let file, _, _), .resize(let file, _), .extend(let file, _), .setAttribute(let file, _, _),
            .removeAttribute(let file, _), .changePermissions(let file, _):
            file
        default: nil
        }
    }

    /// Whether `fdatasync` covers it: content and size, not attributes and permissions.
    var isData: Bool {
        switch self {
        case .write, .resize, .extend: true
        default: false
        }
    }
}

extension RecordedOperation: CustomStringConvertible {
    public var description: String {
        switch self {
        case .create(let file, let isDirectory, let permissions):
            "create \(isDirectory ? "directory" : "file") \(file) mode \(String(permissions, radix: 8))"
        case .enter(let directory, let name, let file): "name \(file) \(name.quoted) in \(directory)"
        case .remove(let directory, let name): "remove \(name.quoted) from \(directory)"
        case .rename(let file, let fromDirectory, let from, let toDirectory, let to, let exchanged):
            "rename \(file) from \(from.quoted) in \(fromDirectory) to \(to.quoted) in \(toDirectory)"
                + (exchanged.map { ", exchanged with \($0)" } ?? "")
        case .write(let file, let offset, let bytes): "write \(bytes.count) bytes at \(offset) of \(file)"
        case .resize(let file, let length): "resize \(file) to \(length)"
        case .extend(let file, let length): "extend \(file) to \(length)"
        case .setAttribute(let file, let name, let value): "set \(name) of \(file) to \(value.count) bytes"
        case .removeAttribute(let file, let name): "remove \(name) of \(file)"
        case .changePermissions(let file, let bits): "permissions of \(file) to \(String(bits, radix: 8))"
        case .synchronize(let file, let dataOnly): "\(dataOnly ? "fdatasync" : "fsync") \(file)"
        case .synchronizeAll: "syncfs"
        }
    }
}
