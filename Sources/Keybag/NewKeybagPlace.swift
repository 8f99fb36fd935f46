import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel

/// The directories and small files around a keybag that is being made.
struct NewKeybagPlace {
    let home: KeybagHome
    let system: any SystemCalls

    /// Makes a directory for the owner alone, and what is missing above it, each durable.
    func makeDirectory(_ path: FilePath) throws(ProtectionError) {
        do throws(SystemError) { try make(path) } catch {
            throw ProtectionError(error, "the directory cannot be made").at(path)
        }
    }

    private func make(_ path: FilePath) throws(SystemError) {
        do {
            try system.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        } catch let error where error.errorNumber == EEXIST {
            guard try system.status(of: path, in: currentDirectory, followLinks: true).kind == .directory else {
                throw SystemError(call: error.call, errorNumber: ENOTDIR, path: path)
            }
            return
        } catch let error where error.errorNumber == ENOENT && path.parent != path {
            try make(path.parent)
            try system.makeDirectory(path, in: currentDirectory, permissions: 0o700)
        }
        try system.synchronizeDirectory(path.parent)
    }

    private func exists(_ path: FilePath) throws(ProtectionError) -> Bool {
        do throws(SystemError) {
            _ = try system.status(of: path, in: currentDirectory, followLinks: false)
            return true
        } catch {
            if error.errorNumber == ENOENT || error.errorNumber == ENOTDIR { return false }
            throw ProtectionError(error, "it cannot be told what is here").at(path)
        }
    }

    func requireNoKeybag() throws(ProtectionError) {
        for path in [home.keybag, home.keybagBackup] where try exists(path) {
            throw ProtectionError(.alreadyExists, "there is a keybag already; nothing was changed", path: path)
        }
    }

    /// Makes the state directory with the mark in it, or finds the one that an unfinished run left. Returns the
    /// identifier of the keybag to be. `wanted` is nil for a random one.
    func prepareState(_ wanted: KeybagIdentifier?) throws(ProtectionError) -> KeybagIdentifier {
        let found = try findState()
        if let unfinished = found.unfinished {
            guard wanted == nil || wanted == unfinished else {
                throw ProtectionError(
                    .alreadyExists, "the state of another keybag that was never finished lies here",
                    path: home.stateDirectory(of: unfinished))
            }
            return unfinished
        }
        let identifier: KeybagIdentifier
        if let known = wanted ?? found.empty { identifier = known } else { identifier = try randomIdentifier() }
        let state = home.stateDirectory(of: identifier)
        if try exists(state) {
            let names = try entries(state)
            if let name = names.first(where: { !StagedFile.isTemporaryName($0) }) {
                throw ProtectionError(
                    .alreadyExists, "there is state of a keybag already; nothing was changed",
                    path: state.appending(name))
            }
        }
        // Capsules of a keybag that is gone may be all that is left of its keys.
        if wanted == nil, try exists(home.recoveryCapsule) {
            throw ProtectionError(
                .alreadyExists, "a recovery capsule lies here: recover from it, or move it away",
                path: home.recoveryCapsule)
        }
        try makeDirectory(state)
        try makeIfMissing(state.appending(Keybag.unfinishedName), Array((identifier.description + "\n").utf8))
        return identifier
    }

    /// Looks for the mark of an unfinished run, or for a directory that one had only just made. Refuses a device key that
    /// lies there without a mark: its keybag may be lost, and its owner wants it back.
    private func findState() throws(ProtectionError) -> (unfinished: KeybagIdentifier?, empty: KeybagIdentifier?) {
        guard let root = home.stateRoot else {
            // The directory does not depend on the identifier, so any will do to name it.
            guard let any = KeybagIdentifier(bytes: [UInt8](repeating: 0, count: 16)) else { return (nil, nil) }
            return (try mark(in: home.stateDirectory(of: any)), nil)
        }
        var empty: KeybagIdentifier?
        guard try exists(root) else { return (nil, nil) }
        for name in try entries(root) {
            guard let text = name.text, let identifier = KeybagIdentifier(text) else { continue }
            let directory = root.appending(name)
            if try mark(in: directory) == identifier { return (identifier, nil) }
            for key in FileDeviceKeyStore.names where try exists(directory.appending(key)) {
                throw ProtectionError(
                    .alreadyExists, "there is a device key without a keybag: recover the keybag, or move the key away",
                    path: directory.appending(key))
            }
            if try entries(directory).allSatisfy(StagedFile.isTemporaryName) { empty = identifier }
        }
        return (nil, empty)
    }

    private func mark(in directory: FilePath) throws(ProtectionError) -> KeybagIdentifier? {
        do throws(SystemError) {
            let bytes = try SafeFile.read(
                directory.appending(Keybag.unfinishedName), maximumSize: 64, ownerOnly: true, system)
            return KeybagIdentifier(String(decoding: bytes.dropLast(), as: UTF8.self))
        } catch {
            if error.errorNumber == ENOENT || error.errorNumber == ENOTDIR { return nil }
            throw ProtectionError(error, "it cannot be told whether a keybag was left unfinished").at(directory)
        }
    }

    private func entries(_ directory: FilePath) throws(ProtectionError) -> [FilePath] {
        do throws(SystemError) {
            let opened = try system.openFile(directory, [.read, .directory])
            return try system.entries(opened.number).map(\.name)
        } catch {
            throw ProtectionError(error, "the state directory cannot be read").at(directory)
        }
    }

    private func randomIdentifier() throws(ProtectionError) -> KeybagIdentifier {
        let bytes = try translatingErrors { () throws(CryptographyError) in try RandomBytes.bytes(16) }
        guard let identifier = KeybagIdentifier(random: bytes) else {
            throw ProtectionError(.cryptography, "there are no random bytes")
        }
        return identifier
    }

    /// Makes a small file unless it is there.
    func makeIfMissing(_ path: FilePath, _ bytes: [UInt8]) throws(ProtectionError) {
        guard try !exists(path) else { return }
        let system = system
        let result = bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in
                try AtomicFile.replace(path, with: bytes, permissions: 0o600, exclusive: true, system)
            }
        }
        if case .failure(let error) = result { throw ProtectionError(error, "a file cannot be made").at(path) }
    }

    func makeAttemptFile(_ file: AttemptFile, _ path: FilePath) throws(ProtectionError) {
        if try !exists(path) { try file.create() }
    }

    /// Takes the mark away. When that fails, it does no harm: with a keybag beside it, it means nothing.
    func finish(_ state: FilePath) {
        try? system.unlink(state.appending(Keybag.unfinishedName), in: currentDirectory)
        try? system.synchronizeDirectory(state)
    }
}
