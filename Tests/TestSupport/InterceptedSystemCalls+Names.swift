import LinuxSystem

// Status, names, directories and attributes.
extension InterceptedSystemCalls {
    public func status(_ descriptor: Int32) throws(SystemError) -> FileStatus {
        try run(SystemCallDescription(.status, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.status(descriptor)
        }
    }

    public func status(
        of path: FilePath, in directory: Int32, followLinks: Bool
    ) throws(SystemError) -> FileStatus {
        try run(SystemCallDescription(.statusOfPath, path: path, directory: directory)) { (_) throws(SystemError) in
            try base.status(of: path, in: directory, followLinks: followLinks)
        }
    }

    public func rename(
        _ from: FilePath, in fromDirectory: Int32, to: FilePath, in toDirectory: Int32, replacing: Replacement
    ) throws(SystemError) {
        let call = SystemCallDescription(
            .rename, path: to, directory: toDirectory, source: from, sourceDirectory: fromDirectory,
            replacing: replacing)
        try run(call) { () throws(SystemError) in
            try base.rename(from, in: fromDirectory, to: to, in: toDirectory, replacing: replacing)
        }
    }

    public func link(_ descriptor: Int32, to path: FilePath, in directory: Int32) throws(SystemError) {
        try run(SystemCallDescription(.link, descriptor: descriptor, path: path, directory: directory)) {
            () throws(SystemError) in
            try base.link(descriptor, to: path, in: directory)
        }
    }

    public func unlink(_ path: FilePath, in directory: Int32) throws(SystemError) {
        try run(SystemCallDescription(.unlink, path: path, directory: directory)) { () throws(SystemError) in
            try base.unlink(path, in: directory)
        }
    }

    public func removeDirectory(_ path: FilePath, in directory: Int32) throws(SystemError) {
        try run(SystemCallDescription(.removeDirectory, path: path, directory: directory)) { () throws(SystemError) in
            try base.removeDirectory(path, in: directory)
        }
    }

    public func makeDirectory(
        _ path: FilePath, in directory: Int32, permissions: UInt32
    ) throws(SystemError) {
        let call = SystemCallDescription(
            .makeDirectory, path: path, directory: directory, permissions: permissions)
        try run(call) { () throws(SystemError) in
            try base.makeDirectory(path, in: directory, permissions: permissions)
        }
    }

    public func readDirectory(_ descriptor: Int32) throws(SystemError) -> [DirectoryEntry] {
        try run(SystemCallDescription(.readDirectory, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.readDirectory(descriptor)
        }
    }

    public func readDirectory(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int {
        try run(SystemCallDescription(.readDirectory, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.readDirectory(descriptor, into: buffer)
        }
    }

    public func status(ofName file: UnsafePointer<CChar>, in directory: Int32) throws(SystemError) -> FileStatus {
        let call = SystemCallDescription(.statusOfPath, path: FilePath(copying: file), directory: directory)
        return try run(call) { (_) throws(SystemError) in try base.status(ofName: file, in: directory) }
    }

    public func attribute(
        _ name: String, ofName file: UnsafePointer<CChar>, in directory: Int32,
        into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        let call = SystemCallDescription(
            .attributeOfPath, path: FilePath(copying: file), directory: directory, attribute: name)
        return try run(call) { (_) throws(SystemError) in
            try base.attribute(name, ofName: file, in: directory, into: buffer)
        }
    }

    public func fileSystem(_ descriptor: Int32) throws(SystemError) -> FileSystemStatus {
        try run(SystemCallDescription(.fileSystem, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.fileSystem(descriptor)
        }
    }

    public func attribute(_ name: String, of descriptor: Int32) throws(SystemError) -> [UInt8]? {
        try run(SystemCallDescription(.attribute, descriptor: descriptor, attribute: name)) {
            (_) throws(SystemError) in
            try base.attribute(name, of: descriptor)
        }
    }

    public func attribute(
        _ name: String, of descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        try run(SystemCallDescription(.attribute, descriptor: descriptor, attribute: name)) {
            (_) throws(SystemError) in
            try base.attribute(name, of: descriptor, into: buffer)
        }
    }

    public func attribute(
        _ name: String, of path: FilePath, in directory: Int32
    ) throws(SystemError) -> [UInt8]? {
        try run(SystemCallDescription(.attributeOfPath, path: path, directory: directory, attribute: name)) {
            (_) throws(SystemError) in
            try base.attribute(name, of: path, in: directory)
        }
    }

    public func attribute(
        _ name: String, of path: FilePath, in directory: Int32, into buffer: UnsafeMutableRawBufferPointer
    ) throws(SystemError) -> Int? {
        try run(SystemCallDescription(.attributeOfPath, path: path, directory: directory, attribute: name)) {
            (_) throws(SystemError) in
            try base.attribute(name, of: path, in: directory, into: buffer)
        }
    }

    public func setAttribute(
        _ name: String, of descriptor: Int32, to value: [UInt8], replacing: Replacement
    ) throws(SystemError) {
        // As a whole in the closure: the description points at the bytes.
        var result: Result<Void, SystemError> = .success(())
        value.withUnsafeBytes { bytes in
            let call = SystemCallDescription(
                .setAttribute, descriptor: descriptor, bytes: bytes, attribute: name, replacing: replacing)
            do throws(SystemError) {
                try run(call) { () throws(SystemError) in
                    try base.setAttribute(name, of: descriptor, to: value, replacing: replacing)
                }
            } catch {
                result = .failure(error)
            }
        }
        try result.get()
    }

    public func removeAttribute(_ name: String, of descriptor: Int32) throws(SystemError) {
        try run(SystemCallDescription(.removeAttribute, descriptor: descriptor, attribute: name)) {
            () throws(SystemError) in
            try base.removeAttribute(name, of: descriptor)
        }
    }

    public func attributeNames(of descriptor: Int32) throws(SystemError) -> [String] {
        try run(SystemCallDescription(.attributeNames, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.attributeNames(of: descriptor)
        }
    }
}
