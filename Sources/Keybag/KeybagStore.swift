import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// Reads and writes the two copies of one keybag. Thread-safe; changes of several processes take turns by a lock file.
final class KeybagStore: Sendable {
    let home: KeybagHome
    let system: any SystemCalls
    let keys: DeviceKeys

    init(home: KeybagHome, keys: DeviceKeys, system: any SystemCalls) {
        self.home = home
        self.keys = keys
        self.system = system
    }

    /// What one copy turned out to be.
    enum Copy {
        case good(KeybagDocument, [UInt8])
        case bad(ProtectionError)
    }

    /// Both copies, and the one that counts.
    struct Reading {
        /// The authentic copy with the highest change number.
        let document: KeybagDocument
        /// True when the copies do not hold the same bytes.
        let copiesDiffer: Bool
    }

    private var paths: [FilePath] { [home.keybag, home.keybagBackup] }

    /// Reads both copies. The highest authentic one counts; a damaged one is passed over while the other is good.
    ///
    /// Throws `needsNewerVersion` when either copy is authentic and from the future, `noKeybag` when both are missing,
    /// else the first copy's error.
    func read() throws(ProtectionError) -> Reading {
        let copies = paths.map { path in copy(at: path) }
        var best: (document: KeybagDocument, bytes: [UInt8])?
        var failures: [ProtectionError] = []
        for copy in copies {
            switch copy {
            case .good(let document, let bytes):
                if let present = best, present.document.change >= document.change { continue }
                best = (document, bytes)
            case .bad(let error):
                if case .needsNewerVersion = error.code { throw error }
                failures.append(error)
            }
        }
        if let best {
            let copiesDiffer = copies.contains { copy in
                if case .good(_, let bytes) = copy { bytes != best.bytes } else { true }
            }
            return Reading(document: best.document, copiesDiffer: copiesDiffer)
        }
        throw Self.worst(failures, home)
    }

    private static func worst(_ failures: [ProtectionError], _ home: KeybagHome) -> ProtectionError {
        failures.first { if case .system(ENOENT) = $0.code { false } else { true } }
            ?? ProtectionError(.noKeybag, "there is no keybag here", path: home.directory)
    }

    private func copy(at path: FilePath) -> Copy {
        do throws(ProtectionError) {
            let bytes = try Self.bytes(at: path, system)
            return .good(try KeybagDocument(decoding: bytes, authenticationKey: keys.keybagAuthentication), bytes)
        } catch {
            return .bad(error.at(path))
        }
    }

    static func bytes(at path: FilePath, _ system: any SystemCalls) throws(ProtectionError) -> [UInt8] {
        do throws(SystemError) {
            return try SafeFile.read(path, maximumSize: KeybagDocument.maximumSize, ownerOnly: false, system)
        } catch {
            if error.errorNumber == EFBIG {
                throw ProtectionError(.damaged(.keybag), "the keybag is too large to be one", path: path, cause: error)
            }
            throw ProtectionError(error, "the keybag cannot be read").at(path)
        }
    }

    /// The identifiers that the copies claim, and why a copy claims none.
    static func claimedIdentifiers(
        in home: KeybagHome, _ system: any SystemCalls
    ) throws(ProtectionError) -> [KeybagIdentifier] {
        var identifiers: [KeybagIdentifier] = []
        var failures: [ProtectionError] = []
        for path in [home.keybag, home.keybagBackup] {
            do throws(ProtectionError) {
                guard let identifier = KeybagDocument.claimedIdentifier(in: try bytes(at: path, system)) else {
                    throw ProtectionError(.damaged(.keybag), "the keybag is not in its canonical form", path: path)
                }
                if !identifiers.contains(identifier) { identifiers.append(identifier) }
            } catch {
                failures.append(error)
            }
        }
        guard !identifiers.isEmpty else { throw worst(failures, home) }
        return identifiers
    }

    // MARK: Changing

    /// Runs `body` while nobody else changes the keybag.
    static func withChangeLock<Result>(
        _ home: KeybagHome, _ system: any SystemCalls, _ body: () throws(ProtectionError) -> Result
    ) throws(ProtectionError) -> Result {
        try home.requireOwner(system)
        let file: HeldDescriptor
        do throws(SystemError) {
            file = HeldDescriptor(
                try system.openFile(home.changeLock, [.read, .write, .create, .noFollow, .nonBlocking]))
            _ = try file.lock(.exclusive, start: 0, count: 1, wait: true)
        } catch {
            throw ProtectionError(error, "the keybag cannot be locked for a change").at(home.changeLock)
        }
        return try withExtendedLifetime(file) { () throws(ProtectionError) in try body() }
    }

    /// One change: under the lock, from what is on disk now, with a change number that is one higher. `body` may throw to
    /// leave everything as it is. On return both copies are durable.
    func change(
        _ body: (inout KeybagDocument) throws(ProtectionError) -> Void
    ) throws(ProtectionError) -> KeybagDocument {
        try LockManager.requireNotInUse()
        return try Self.withChangeLock(home, system) { () throws(ProtectionError) in
            var document = try self.read().document
            document.change = try KeybagDocument.change(after: document.change)
            try body(&document)
            guard document.isConsistent else {
                throw ProtectionError(.invalidArgument, "this change would make a keybag that contradicts itself")
            }
            try self.write(document, replacing: .allowed)
            return document
        }
    }

    /// Writes the copies that differ from the one that counts. Does nothing when both are the same.
    func repair() throws(ProtectionError) -> Bool {
        guard try self.read().copiesDiffer else { return false }
        return try Self.withChangeLock(home, system) { () throws(ProtectionError) in
            let reading = try self.read()
            guard reading.copiesDiffer else { return false }
            try self.write(reading.document, replacing: .allowed)
            return true
        }
    }

    /// Writes both copies. Everything that takes room happens before the first name changes, so that a full disk leaves
    /// the old keybag.
    func write(_ document: KeybagDocument, replacing: Replacement) throws(ProtectionError) {
        let bytes = try translatingErrors { () throws(CryptographyError) in
            try document.encoded(authenticationKey: keys.keybagAuthentication)
        }
        do throws(SystemError) {
            let directory = try system.openFile(home.directory, [.read, .directory])
            let first = try stage(bytes, in: directory.number)
            let second = try stage(bytes, in: directory.number)
            try first.publish(as: home.keybag.lastComponent, replacing: replacing)
            try second.publish(as: home.keybagBackup.lastComponent, replacing: replacing)
            try system.synchronize(directory.number, dataOnly: false)
        } catch {
            throw ProtectionError(error, "the keybag cannot be written").at(home.directory)
        }
    }

    private func stage(_ bytes: [UInt8], in directory: Int32) throws(SystemError) -> StagedFile {
        let staged = try StagedFile(in: directory, permissions: 0o600, system)
        let number = staged.descriptor.number
        let written = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try system.writeFully(number, bytes, at: 0) }
        }
        try written.get()
        try system.synchronize(number, dataOnly: false)
        return staged
    }
}
