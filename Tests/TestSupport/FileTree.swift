import Glibc
import LinuxSystem

/// What a crash simulation holds to be on the disk: files with content, permissions and user attributes, and names.
public struct FileTree: Sendable {
    struct Node: Sendable {
        var isDirectory: Bool
        var permissions: UInt32
        var bytes: [UInt8] = []
        var attributes: [String: [UInt8]] = [:]
        var entries: [FilePath: FileNumber] = [:]
    }

    /// By file number; 0 is the root. Files that have lost their last name stay: a name may yet come back.
    var nodes: [FileNumber: Node] = [:]

    /// Reads the directory and all below it. `number` names each file it meets, the root first.
    init(reading root: FilePath, number: (FileStatus) -> FileNumber) throws {
        let system = LinuxSystemCalls.shared
        let directory = try system.openFile(root, [.read, .directory])
        _ = number(try system.status(directory.number))
        try read(directory.number, 0, system, number)
    }

    private mutating func read(
        _ directory: Int32, _ own: FileNumber, _ system: any SystemCalls, _ number: (FileStatus) -> FileNumber
    ) throws {
        let status = try system.status(directory)
        var node = Node(isDirectory: true, permissions: status.permissions)
        node.attributes = try Self.attributes(directory, system)
        for entry in try system.entries(directory) {
            let status = try system.status(of: entry.name, in: directory, followLinks: false)
            guard status.kind == .regular || status.kind == .directory else { continue }
            let file = number(status)
            node.entries[entry.name] = file
            guard nodes[file] == nil else { continue }
            let opened = try system.openFile(entry.name, in: directory, [.read, .noFollow])
            if status.kind == .directory {
                try read(opened.number, file, system, number)
            } else {
                nodes[file] = Node(
                    isDirectory: false, permissions: status.permissions,
                    bytes: try SafeFile.read(
                        entry.name, in: directory, maximumSize: 1 << 30, ownerOnly: false, system),
                    attributes: try Self.attributes(opened.number, system))
            }
        }
        nodes[own] = node
    }

    private static func attributes(_ descriptor: Int32, _ system: any SystemCalls) throws -> [String: [UInt8]] {
        var attributes: [String: [UInt8]] = [:]
        for name in try system.attributeNames(of: descriptor) where name.hasPrefix("user.") {
            attributes[name] = try system.attribute(name, of: descriptor)
        }
        return attributes
    }

    /// Does what an operation does. Of a write, what ``Persistence`` lets through.
    mutating func apply(_ operation: RecordedOperation, _ persistence: Persistence = .all) {
        switch operation {
        case .create(let file, let isDirectory, let permissions):
            nodes[file] = Node(isDirectory: isDirectory, permissions: permissions)
        case .enter(let directory, let name, let file): nodes[directory]?.entries[name] = file
        case .remove(let directory, let name): nodes[directory]?.entries[name] = nil
        case .rename(let file, let fromDirectory, let from, let toDirectory, let to, let exchanged):
            nodes[fromDirectory]?.entries[from] = exchanged
            nodes[toDirectory]?.entries[to] = file
        case .write(let file, let offset, let bytes):
            nodes[file]?.write(bytes, at: Int(offset), persistence)
        case .resize(let file, let length): nodes[file]?.resize(to: Int(length))
        case .extend(let file, let length):
            if let count = nodes[file]?.bytes.count, count < Int(length) { nodes[file]?.resize(to: Int(length)) }
        case .setAttribute(let file, let name, let value): nodes[file]?.attributes[name] = value
        case .removeAttribute(let file, let name): nodes[file]?.attributes[name] = nil
        case .changePermissions(let file, let bits): nodes[file]?.permissions = bits
        case .synchronize, .synchronizeAll: break
        }
    }

    /// 128 bits that are the same for trees that look the same.
    func fingerprint() -> [Int] {
        var hashers = [Hasher(), Hasher()]
        hashers[1].combine(1)
        var seen: [FileNumber: Int] = [:]
        for index in hashers.indices {
            seen.removeAll()
            hash(0, into: &hashers[index], &seen)
        }
        return hashers.map { $0.finalize() }
    }

    private func hash(_ file: FileNumber, into hasher: inout Hasher, _ seen: inout [FileNumber: Int]) {
        if let earlier = seen[file] {
            hasher.combine(earlier)
            return
        }
        seen[file] = seen.count
        guard let node = nodes[file] else { return }
        hasher.combine(node.isDirectory)
        hasher.combine(node.permissions)
        hasher.combine(node.bytes.count)
        node.forEachWrittenBlock { offset, block in
            hasher.combine(offset)
            hasher.combine(bytes: block)
        }
        for (name, value) in node.attributes.sorted(by: { $0.key < $1.key }) {
            hasher.combine(name)
            hasher.combine(value)
        }
        for (name, child) in node.entries.sorted(by: { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }) {
            hasher.combine(name)
            hash(child, into: &hasher, &seen)
        }
        hasher.combine(node.entries.count)
    }

    /// Makes the tree for real in an empty directory.
    func materialise(in root: FilePath) throws {
        var made: [FileNumber: FilePath] = [:]
        try materialise(0, at: root, &made)
    }

    private func materialise(_ number: FileNumber, at path: FilePath, _ made: inout [FileNumber: FilePath]) throws {
        guard let node = nodes[number] else { return }
        let system = LinuxSystemCalls.shared
        if node.isDirectory {
            if number != 0 { try system.makeDirectory(path, in: currentDirectory, permissions: 0o700) }
            for (name, child) in node.entries { try materialise(child, at: path.appending(name), &made) }
        } else if let first = made[number] {
            // A second name of the same file.
            let opened = try system.openFile(first, [.read])
            try system.link(opened.number, to: path, in: currentDirectory)
            return
        }
        made[number] = path
        let options: OpenOptions = node.isDirectory ? [.read, .directory] : [.read, .write, .create, .exclusive]
        let opened = try system.openFile(path, options)
        if !node.isDirectory {
            try node.forEachWrittenBlock { offset, block in
                try system.writeFully(opened.number, block, at: Int64(offset))
            }
            try system.truncate(opened.number, to: Int64(node.bytes.count))
        }
        for (name, value) in node.attributes {
            try system.setAttribute(name, of: opened.number, to: value, replacing: .allowed)
        }
        try system.changePermissions(opened.number, to: node.permissions)
    }
}

extension FileTree.Node {
    private static let blockSize = 4096
    private static let zeros = [UInt8](repeating: 0, count: blockSize)

    /// Hands over the blocks that hold anything but zeros: room that nobody wrote to costs no time and no memory.
    func forEachWrittenBlock(_ body: (Int, UnsafeRawBufferPointer) throws -> Void) rethrows {
        try bytes.withUnsafeBytes { bytes in
            try Self.zeros.withUnsafeBytes { zeros in
                guard let zero = zeros.baseAddress else { return }
                for offset in stride(from: 0, to: bytes.count, by: Self.blockSize) {
                    let end = min(offset + Self.blockSize, bytes.count)
                    let block = UnsafeRawBufferPointer(rebasing: bytes[offset..<end])
                    guard let start = block.baseAddress, memcmp(start, zero, block.count) != 0 else { continue }
                    try body(offset, block)
                }
            }
        }
    }
}
