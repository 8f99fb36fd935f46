import Glibc

/// Writing a whole file so that a crash leaves the old content or the new, never a part.
public enum AtomicFile {
    /// Makes `path` a file with exactly these bytes and permission bits, durable on return.
    ///
    /// A new file is written in the same directory, synchronised, given the name, and the directory is synchronised. A
    /// symbolic link at `path` is replaced, not followed. With `exclusive` nothing is ever overwritten: `EEXIST` when
    /// the name is taken.
    ///
    /// When it throws, nothing new is left in the directory, and the old content is whole. The one exception: when all
    /// went well but the last step, the `fsync` of the directory after a replacement, the new content is in place, and
    /// whether it would outlive a power cut is not known.
    public static func replace(
        _ path: FilePath, in directory: Int32 = currentDirectory, with bytes: UnsafeRawBufferPointer,
        permissions: UInt32 = 0o600, exclusive: Bool = false, _ system: any SystemCalls
    ) throws(SystemError) {
        guard path.bytes.last != UInt8(ascii: "/") else {
            throw SystemError(call: "renameat2", errorNumber: EISDIR, path: path)
        }
        let parent = try system.openFile(path.parent, in: directory, [.read, .directory])
        let staged = try StagedFile(in: parent.number, permissions: permissions, system)
        try system.writeFully(staged.descriptor.number, bytes, at: 0)
        // The process's umask may have taken bits away at creation.
        try system.changePermissions(staged.descriptor.number, to: permissions)
        try system.synchronize(staged.descriptor.number, dataOnly: false)
        let identity = exclusive ? try system.status(staged.descriptor.number) : nil
        try staged.publish(as: path.lastComponent, replacing: exclusive ? .forbidden : .allowed)
        do {
            try system.synchronize(parent.number, dataOnly: false)
        } catch {
            if let identity { withdraw(path.lastComponent, in: parent.number, identity, system) }
            throw error
        }
    }

    /// Takes back a name that was given, if it still is that file.
    private static func withdraw(
        _ name: FilePath, in directory: Int32, _ identity: FileStatus, _ system: any SystemCalls
    ) {
        guard let now = try? system.status(of: name, in: directory, followLinks: false),
            now.device == identity.device, now.inode == identity.inode
        else { return }
        try? system.unlink(name, in: directory)
    }
}
