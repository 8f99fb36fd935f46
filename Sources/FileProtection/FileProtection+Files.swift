import LinuxSystem
import ProtectedFiles
import ProtectionModel
import Synchronization

extension FileProtection {
    /// Writes a whole file atomically and durably. Class D is written `ProtectionClass.none` here, since `.none` alone
    /// would be read as no class given. The class is the one given, else that of the file it replaces, else
    /// the directory's, else the default. Content that is locked is never replaced; with `replacing` false, none is.
    ///
    /// Throws `locked`, `unsupported`, `damaged`, `foreignKeybag`, `system`, and `alreadyExists` with `replacing` false when
    /// the name is taken.
    public func write(
        _ content: [UInt8], to path: FilePath, class protectionClass: ProtectionClass? = nil, replacing: Bool = true
    ) throws(ProtectionError) {
        try files.write(to: path, class: protectionClass, replacing: replacing, from: Self.source(of: content))
    }

    /// Hands out content piece by piece.
    static func source(
        of content: [UInt8], _ observe: @escaping @Sendable (Int) throws -> Void = { _ in }
    ) -> ProtectedFileSystem.Source {
        let position = Mutex(0)
        return { buffer in
            try position.withLock { position in
                let count = min(buffer.count, content.count - position)
                try observe(count)
                content.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
                        .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]))
                }
                position += count
                return count
            }
        }
    }

    /// The whole content of a file, in ordinary memory of the caller: one array of its length, and no other copy is left in
    /// memory. What was read of a file that turns out to be damaged or is locked meanwhile is cleared.
    ///
    /// Throws `locked`, `notProtected`, `recordMissing`, `damaged`, `foreignKeybag`, `needsNewerVersion`, `system`, and
    /// `busy` when others do not stop changing the file.
    public func contents(of path: FilePath) throws(ProtectionError) -> [UInt8] {
        try contents(of: path) { _ in }
    }

    /// The same; `observe` gets the bytes of each piece, and may throw to end it.
    func contents(
        of path: FilePath, _ observe: @escaping @Sendable (Int) throws -> Void
    ) throws(ProtectionError) -> [UInt8] {
        for _ in 0..<16 {
            let file = try files.open(path, for: .reading)
            let length = Int(clamping: try file.length)
            // Up to that length one thread reads, and one read does.
            if length <= 512 * 1024 {
                return try WholeContent.read(length, at: path) { content in
                    content.used = try file.read(into: content.buffer, at: 0)
                    try observe(content.used)
                }
            }
            do throws(ProtectionError) {
                return try WholeContent.read(length, at: path) { content in
                    try files.read(path) { bytes in
                        try observe(bytes.count)
                        try content.append(bytes)
                    }
                }
            } catch {
                // Somebody made it longer after its length was asked for: once more.
                guard error.cause is WholeContent.TooLong else { throw error }
            }
        }
        throw ProtectionError(.busy, "the file is changed again and again while it is read", path: path)
    }

    /// Opens a file for positioned reads and writes that obey the state matrix: class A is checked at every call, class
    /// B at open only.
    public func open(
        _ path: FilePath, for access: ProtectedFileSystem.Access
    ) throws(ProtectionError) -> ProtectedFile {
        try files.open(path, for: access)
    }

    /// Makes a directory with permissions 0700 whose class new files in it get, in every lock state. One that is there already
    /// gets the class, and what lies in it keeps its own. Its parent has to be there.
    ///
    /// Throws `unsupported`, and `system`, also when something else than a directory is there.
    public func makeDirectory(_ path: FilePath, class protectionClass: ProtectionClass) throws(ProtectionError) {
        do throws(SystemError) {
            try files.system.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        } catch {
            guard error.errorNumber == ErrorNumber.exists else { throw Self.failed(error, path) }
        }
        do throws(ProtectionError) {
            // With the dot nothing but a directory will do.
            try setProtectionClass(protectionClass, of: path.appending(.current))
        } catch { throw error.relocated(to: path) }
    }

    /// Changes the class of a file by wrapping its key anew, or with `rekey` by giving it a new key; or the class that a
    /// directory gives to new files.
    @discardableResult
    public func setProtectionClass(
        _ protectionClass: ProtectionClass, of path: FilePath, rekey: Bool = false
    ) throws(ProtectionError) -> ClassChange {
        try files.setProtectionClass(of: path, to: protectionClass, rekey: rekey)
    }

    /// The class that a file claims, or that a directory gives to new files; nil for a plain file. Needs no key.
    public func protectionClass(of path: FilePath) throws(ProtectionError) -> ProtectionClass? {
        try files.protectionClass(of: path)
    }
}
