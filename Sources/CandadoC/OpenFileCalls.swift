import LinuxSystem

/// The calls on files as a look at one open file needs them: the one name leads to its descriptor, whatever names the file
/// has or has lost. All else is handed on.
final class OpenFileCalls: SystemCalls {
    /// The name of the file. No other is used.
    static let name: FilePath = "the open file"

    private let descriptor: Int32
    private let base = LinuxSystemCalls.shared

    /// The descriptor stays the caller's, and open meanwhile.
    init(_ descriptor: Int32) { self.descriptor = descriptor }

    // MARK: By name

    /// Of the same opening: nobody moves its position, since content is read at places.
    func open(
        _ path: FilePath, in directory: Int32, _ options: OpenOptions, permissions: UInt32
    ) throws(SystemError) -> Int32 { try base.duplicate(descriptor) }

    func status(of path: FilePath, in directory: Int32, followLinks: Bool) throws(SystemError) -> FileStatus {
        try base.status(descriptor)
    }

    func status(ofName file: UnsafePointer<CChar>, in directory: Int32) throws(SystemError) -> FileStatus {
        try base.status(descriptor)
    }

    func attribute(_ name: String, of path: FilePath, in directory: Int32) throws(SystemError) -> [UInt8]? {
        try base.attribute(name, of: descriptor)
    }

    func attribute(
        _ name: String, of path: FilePath, in directory: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? { try base.attribute(name, of: descriptor, into: buffer) }

    func attribute(
        _ name: String, ofName file: UnsafePointer<CChar>, in directory: Int32,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? { try base.attribute(name, of: descriptor, into: buffer) }

    // MARK: By descriptor

    func close(_ descriptor: Int32) throws(SystemError) { try base.close(descriptor) }
    func duplicate(_ descriptor: Int32) throws(SystemError) -> Int32 { try base.duplicate(descriptor) }

    func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try base.read(descriptor, into: buffer)
    }

    func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int { try base.read(descriptor, into: buffer, at: offset) }

    func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) throws(SystemError) -> Int {
        try base.write(descriptor, buffer)
    }

    func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try base.write(descriptor, buffer, at: offset)
    }

    func truncate(_ descriptor: Int32, to length: Int64) throws(SystemError) {
        try base.truncate(descriptor, to: length)
    }

    func allocate(_ descriptor: Int32, offset: Int64, length: Int64) throws(SystemError) {
        try base.allocate(descriptor, offset: offset, length: length)
    }

    func synchronize(_ descriptor: Int32, dataOnly: Bool) throws(SystemError) {
        try base.synchronize(descriptor, dataOnly: dataOnly)
    }

    func synchronizeFileSystem(_ descriptor: Int32) throws(SystemError) { try base.synchronizeFileSystem(descriptor) }
    func status(_ descriptor: Int32) throws(SystemError) -> FileStatus { try base.status(descriptor) }

    func readDirectory(_ descriptor: Int32) throws(SystemError) -> [DirectoryEntry] {
        try base.readDirectory(descriptor)
    }

    func readDirectory(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int { try base.readDirectory(descriptor, into: buffer) }

    func attribute(_ name: String, of descriptor: Int32) throws(SystemError) -> [UInt8]? {
        try base.attribute(name, of: descriptor)
    }

    func attribute(
        _ name: String, of descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? { try base.attribute(name, of: descriptor, into: buffer) }

    func setAttribute(
        _ name: String, of descriptor: Int32, to value: [UInt8], replacing: Replacement
    ) throws(SystemError) { try base.setAttribute(name, of: descriptor, to: value, replacing: replacing) }

    func removeAttribute(_ name: String, of descriptor: Int32) throws(SystemError) {
        try base.removeAttribute(name, of: descriptor)
    }

    func attributeNames(of descriptor: Int32) throws(SystemError) -> [String] {
        try base.attributeNames(of: descriptor)
    }

    func changeOwner(_ descriptor: Int32, owner: UInt32, group: UInt32) throws(SystemError) {
        try base.changeOwner(descriptor, owner: owner, group: group)
    }

    func changePermissions(_ descriptor: Int32, to permissions: UInt32) throws(SystemError) {
        try base.changePermissions(descriptor, to: permissions)
    }

    func setTimes(_ descriptor: Int32, access: FileTime, modification: FileTime) throws(SystemError) {
        try base.setTimes(descriptor, access: access, modification: modification)
    }

    func lock(
        _ descriptor: Int32, _ lock: RangeLock, start: Int64, count: Int64, wait: Bool
    ) throws(SystemError) -> Bool { try base.lock(descriptor, lock, start: start, count: count, wait: wait) }

    func isLocked(_ descriptor: Int32, start: Int64, count: Int64) throws(SystemError) -> Bool {
        try base.isLocked(descriptor, start: start, count: count)
    }

    func takeReadLease(_ descriptor: Int32) throws(SystemError) { try base.takeReadLease(descriptor) }
    func leaseState(_ descriptor: Int32) throws(SystemError) -> LeaseState { try base.leaseState(descriptor) }
    func dropLease(_ descriptor: Int32) throws(SystemError) { try base.dropLease(descriptor) }
    func fileSystem(_ descriptor: Int32) throws(SystemError) -> FileSystemStatus { try base.fileSystem(descriptor) }
    func random(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) { try base.random(into: buffer) }

    // MARK: Names, of which this file has none

    private func refuse(_ call: String) -> SystemError {
        SystemError(call: call, errorNumber: ErrorNumber.noSystemCall, path: nil)
    }

    func rename(
        _ from: FilePath, in fromDirectory: Int32, to: FilePath, in toDirectory: Int32, replacing: Replacement
    ) throws(SystemError) { throw refuse("rename") }

    func link(_ descriptor: Int32, to path: FilePath, in directory: Int32) throws(SystemError) {
        throw refuse("link")
    }

    func unlink(_ path: FilePath, in directory: Int32) throws(SystemError) { throw refuse("unlink") }
    func removeDirectory(_ path: FilePath, in directory: Int32) throws(SystemError) { throw refuse("rmdir") }

    func makeDirectory(_ path: FilePath, in directory: Int32, permissions: UInt32) throws(SystemError) {
        throw refuse("mkdir")
    }
}
