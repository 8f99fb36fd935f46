import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The device key in two files of the state directory. `docs/formats/device-key.md`.
public struct FileDeviceKeyStore: DeviceKeyStore {
    static let magic = Array("candado-device\n".utf8) + [0]
    static let version: UInt32 = 1
    /// Bytes before the key.
    static let headerSize = 40
    /// Bytes of a file.
    static let fileSize = headerSize + DeviceKey.size + 32
    static let names: [FilePath] = ["device-key", "device-key.backup"]
    /// Tells backup tools that know the convention to leave a file out (freedesktop.org, common extended attributes).
    static let backupAttribute = "user.xdg.robots.backup"

    private let home: KeybagHome
    private let system: any SystemCalls

    /// Keeps keys in the state directory of a home.
    public init(home: KeybagHome, system: any SystemCalls) {
        self.home = home
        self.system = system
    }

    private func path(_ name: FilePath, _ keybag: KeybagIdentifier) -> FilePath {
        home.stateDirectory(of: keybag).appending(name)
    }

    public func create(for keybag: KeybagIdentifier) throws(ProtectionError) {
        let key = try translatingErrors { () throws(SecretMemoryError) in
            try SecretBytes.random(count: DeviceKey.size)
        }
        let file = try Self.encode(key, for: keybag)
        for name in Self.names { try keep(file, to: path(name, keybag)) }
    }

    public func exists(for keybag: KeybagIdentifier) throws(ProtectionError) -> Bool {
        for name in Self.names {
            do {
                _ = try system.status(of: path(name, keybag), in: currentDirectory, followLinks: false)
                return true
            } catch let error where error.errorNumber == ENOENT || error.errorNumber == ENOTDIR {
                continue
            } catch {
                throw ProtectionError(error, "it cannot be told whether there is a device key")
            }
        }
        return false
    }

    public func load(for keybag: KeybagIdentifier) throws(ProtectionError) -> LoadedDeviceKey {
        let second = copy(Self.names[1], keybag)
        switch copy(Self.names[0], keybag) {
        case .good(let key):
            let isSame = if case .good(let other) = second { key.bytes.equals(other.bytes) } else { false }
            return LoadedDeviceKey(key: key, isCopyDamaged: !isSame)
        case .bad(let error):
            switch consume second {
            case .good(let key):
                return LoadedDeviceKey(key: key, isCopyDamaged: true)
            case .bad(let other):
                if case .system(ENOENT) = error.code, case .system(ENOENT) = other.code {
                    throw ProtectionError(
                        .damaged(.deviceKey), "the device key is gone: without it only a recovery key helps",
                        path: path(Self.names[0], keybag))
                }
                if case .system(ENOENT) = error.code { throw other }
                throw error
            }
        }
    }

    public func repair(for keybag: KeybagIdentifier) throws(ProtectionError) -> Bool {
        let loaded = try load(for: keybag)
        guard loaded.isCopyDamaged else { return false }
        let file = try Self.encode(loaded.key.bytes, for: keybag)
        for name in Self.names {
            if case .good(let key) = copy(name, keybag), key.bytes.equals(loaded.key.bytes) { continue }
            try setAside(path(name, keybag))
            try keep(file, to: path(name, keybag))
        }
        return true
    }

    /// Renames a bad file, so that not even damaged bytes are destroyed.
    private func setAside(_ path: FilePath) throws(ProtectionError) {
        for number in 1...99 {
            guard let name = FilePath(bytes: path.bytes + Array(".damaged-\(number)".utf8)) else { continue }
            do {
                try system.rename(path, in: currentDirectory, to: name, in: currentDirectory, replacing: .forbidden)
                return
            } catch let error where error.errorNumber == ENOENT {
                return
            } catch let error where error.errorNumber == EEXIST {
                continue
            } catch {
                throw ProtectionError(error, "the damaged copy of the device key cannot be set aside")
            }
        }
        throw ProtectionError(.alreadyExists, "too many damaged copies of the device key lie here", path: path)
    }

    // MARK: One file

    private enum Copy: ~Copyable {
        case good(DeviceKey)
        case bad(ProtectionError)
    }

    private func keep(_ file: borrowing SecretBytes, to path: FilePath) throws(ProtectionError) {
        do {
            try file.withUnsafeBytes { (bytes) throws(SystemError) in
                try AtomicFile.replace(path, with: bytes, permissions: 0o600, exclusive: true, system)
            }
        } catch let error where error.errorNumber == EEXIST {
            throw ProtectionError(.alreadyExists, "there is a device key already", path: path, cause: error)
        } catch {
            throw ProtectionError(error, "the device key cannot be written")
        }
        // A tag that cannot be set harms nothing: the directory has a tag file too.
        if let written = try? system.openFile(path, [.read, .noFollow]) {
            try? system.setAttribute(
                Self.backupAttribute, of: written.number, to: Array("false".utf8), replacing: .allowed)
        }
    }

    private func copy(_ name: FilePath, _ keybag: KeybagIdentifier) -> Copy {
        let path = path(name, keybag)
        do throws(ProtectionError) {
            var file = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: Self.fileSize) }
            let count = try file.withUnsafeMutableBytes { (buffer) throws(ProtectionError) -> Int in
                do throws(SystemError) {
                    return try SafeFile.read(path, into: buffer, ownerOnly: true, system)
                } catch let error where error.errorNumber == EFBIG {
                    return 0
                } catch {
                    throw ProtectionError(error, "the device key cannot be read")
                }
            }
            guard count == Self.fileSize else {
                throw ProtectionError(.damaged(.deviceKey), "the device key is not what was written")
            }
            return .good(try Self.decode(file, for: keybag))
        } catch {
            return .bad(error.at(path))
        }
    }

    private static func header(for keybag: KeybagIdentifier) -> [UInt8] {
        magic + LittleEndian.bytes(version) + LittleEndian.bytes(UInt32(0)) + keybag.bytes
    }

    static func encode(
        _ key: borrowing SecretBytes, for keybag: KeybagIdentifier
    ) throws(ProtectionError) -> SecretBytes {
        let header = header(for: keybag)
        let check = try translatingErrors { () throws(CryptographyError) in
            try Authenticator.authenticate(header, key: key)
        }
        var file = try translatingErrors { () throws(SecretMemoryError) in try SecretBytes(count: fileSize) }
        file.withUnsafeMutableBytes { file in
            file.copyBytes(from: header)
            key.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: file[headerSize..<72]).copyMemory(from: $0) }
            UnsafeMutableRawBufferPointer(rebasing: file[72...]).copyBytes(from: check)
        }
        return file
    }

    static func decode(
        _ file: borrowing SecretBytes, for keybag: KeybagIdentifier
    ) throws(ProtectionError) -> DeviceKey {
        let damaged = ProtectionError(.damaged(.deviceKey), "the device key is not what was written")
        // What is not secret of it, around the key.
        let header = (0..<headerSize).map { place in file.withUnsafeBytes { $0[place] } }
        let check = (72..<fileSize).map { place in file.withUnsafeBytes { $0[place] } }
        let bytes = try file.withUnsafeBytes { (file) throws(ProtectionError) in
            try translatingErrors { () throws(SecretMemoryError) in
                try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: file[headerSize..<72]))
            }
        }
        guard !bytes.isAllZero else { throw damaged }
        let isWhole = try translatingErrors { () throws(CryptographyError) in
            try Authenticator.verify(check, of: header, key: bytes)
        }
        guard isWhole, header.starts(with: magic) else { throw damaged }
        guard LittleEndian.value(header[16..<20]) as UInt32 == version,
            LittleEndian.value(header[20..<24]) as UInt32 == 0
        else {
            throw ProtectionError(.needsNewerVersion, "the device key needs a newer version of candado")
        }
        guard header == Self.header(for: keybag) else {
            throw ProtectionError(.damaged(.deviceKey), "the device key belongs to another keybag")
        }
        return try DeviceKey(bytes)
    }
}
