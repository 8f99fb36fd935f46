import Glibc
import LinuxSystem
import ProtectedFiles

/// An open directory of a walk, closed when nobody needs it any more.
final class WalkedDirectory: Sendable {
    let descriptor: Descriptor
    let status: FileStatus
    var number: Int32 { descriptor.number }

    init(_ descriptor: consuming Descriptor) throws(SystemError) {
        status = try descriptor.system.status(descriptor.number)
        self.descriptor = descriptor
    }
}

/// The names in one directory, sorted by their bytes, packed so that a directory of a million names takes few bytes more
/// than the names themselves.
final class DirectoryListing: @unchecked Sendable {
    // Written only before it is handed on.
    private var storage: UnsafeMutableRawPointer
    private var capacity: Int
    private var used = 0
    private var starts: [UInt32] = []

    /// How many entries there are.
    var count: Int { starts.count }

    private init() {
        capacity = 4096
        storage = .allocate(byteCount: capacity, alignment: 1)
    }

    deinit { storage.deallocate() }

    /// A listing of one name, which may be a path, for an operand that is no directory.
    init(operand: FilePath, _ kind: FileStatus.Kind) {
        capacity = operand.bytes.count + 2
        storage = .allocate(byteCount: capacity, alignment: 1)
        operand.bytes.withUnsafeBytes { append($0, kind) }
    }

    /// Reads an open directory through `buffer`, which the kernel fills again and again. An error that comes after
    /// some names leaves those.
    static func read(
        _ directory: Int32, through buffer: UnsafeMutableRawBufferPointer, _ system: any SystemCalls
    ) -> (listing: DirectoryListing, failure: SystemError?) {
        let listing = DirectoryListing()
        var failure: SystemError?
        do throws(SystemError) {
            while true {
                let count = try system.readDirectory(directory, into: buffer)
                if count == 0 { break }
                DirectoryEntry.forEachRecord(in: UnsafeRawBufferPointer(rebasing: buffer[..<count])) { name, kind, _ in
                    listing.append(name, kind)
                }
                // Where a name begins is kept in 32 bits.
                guard listing.used < Int(UInt32.max) - buffer.count * 2 else {
                    throw SystemError(call: "getdents64", errorNumber: ENOMEM)
                }
            }
        } catch {
            failure = error
        }
        listing.sort()
        return (listing, failure)
    }

    private func append(_ name: UnsafeRawBufferPointer, _ kind: FileStatus.Kind?) {
        let needed = used + name.count + 2
        if needed > capacity {
            capacity = max(needed, capacity * 2)
            let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
            larger.copyMemory(from: storage, byteCount: used)
            storage.deallocate()
            storage = larger
        }
        starts.append(UInt32(used))
        storage.storeBytes(of: Self.code(kind), toByteOffset: used, as: UInt8.self)
        UnsafeMutableRawBufferPointer(start: storage + used + 1, count: name.count).copyMemory(from: name)
        storage.storeBytes(of: 0, toByteOffset: needed - 1, as: UInt8.self)
        used = needed
    }

    private func sort() {
        let names = UnsafeRawPointer(storage + 1).assumingMemoryBound(to: CChar.self)
        starts.sort { strcmp(names + Int($0), names + Int($1)) < 0 }
    }

    /// The name as a C string, which lives as long as the listing.
    func name(_ index: Int) -> UnsafePointer<CChar> {
        UnsafeRawPointer(storage + Int(starts[index]) + 1).assumingMemoryBound(to: CChar.self)
    }

    /// The kind, or nil where the file system does not tell it in a directory.
    func kind(_ index: Int) -> FileStatus.Kind? {
        switch storage.load(fromByteOffset: Int(starts[index]), as: UInt8.self) {
        case 1: .regular
        case 2: .directory
        case 3: .symbolicLink
        case 4: .special
        default: nil
        }
    }

    private static func code(_ kind: FileStatus.Kind?) -> UInt8 {
        switch kind {
        case nil: 0
        case .regular: 1
        case .directory: 2
        case .symbolicLink: 3
        case .special: 4
        }
    }
}
