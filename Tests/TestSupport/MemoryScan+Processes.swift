import Glibc
import LinuxSystem
import SecretMemory

/// Looking for secrets in other processes, which needs root, and in files.
extension MemoryScan {
    /// A piece of the memory of a process, as `/proc/PID/smaps` describes it.
    public struct Mapping: Sendable, Hashable {
        public let range: Range<UInt>
        /// As in `rw-p`.
        public let permissions: String
        /// A path, a name in brackets, or empty.
        public let name: String
        /// What is behind a name such as `Rss`, in bytes, and the flags of the kernel.
        public internal(set) var sizes: [String: Int] = [:]
        public internal(set) var flags: Set<String> = []

        public var isWritable: Bool { permissions.contains("w") }
        var isShared: Bool { permissions.hasSuffix("s") }
        /// Locked into memory, left out of core files, not inherited by forked children.
        public var isKept: Bool { flags.isSuperset(of: ["lo", "dd", "dc"]) }
    }

    /// Where a half of a secret lies.
    public struct Place: Sendable, Hashable {
        public let address: UInt
        public let mapping: Mapping
    }

    /// Where the halves of the secret lie in the memory of another process. Only memory that somebody can write is looked
    /// at: nothing else can hold a secret. Throws when the memory cannot be read at all; a mapping that even root cannot read,
    /// such as one of `memfd_secret`, is passed over.
    public func places(in process: Int32) throws -> [Place] {
        try Self.places(of: [self], in: process)[0]
    }

    /// How often a half of the secret is in the memory of another process, times a half.
    public func copies(in process: Int32) throws -> Double {
        Double(try places(in: process).count) / Double(complements.count)
    }

    /// The same for many secrets, with one look at the memory.
    public static func copies(of scans: [MemoryScan], in process: Int32) throws -> [Double] {
        zip(scans, try places(of: scans, in: process)).map { Double($1.count) / Double($0.complements.count) }
    }

    /// The same for what is in a file, such as a core file.
    public static func copies(of scans: [MemoryScan], inFile path: FilePath) throws -> [Double] {
        let file = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
        guard file >= 0 else { throw Unreadable(what: path.description) }
        defer { close(file) }
        let size = UInt(lseek(file, 0, SEEK_END))
        var counts = [Int](repeating: 0, count: scans.count)
        try forEachBlock(of: file, in: 0..<size) { block, _ in
            for (index, scan) in scans.enumerated() { scan.forEachPlace(in: block) { _ in counts[index] += 1 } }
        }
        return zip(scans, counts).map { Double($1) / Double($0.complements.count) }
    }

    /// Where the halves of several secrets lie, with one look at the memory.
    public static func places(of scans: [MemoryScan], in process: Int32) throws -> [[Place]] {
        let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw Unreadable(what: "/proc/\(process)/mem") }
        defer { close(memory) }
        var found = [[Place]](repeating: [], count: scans.count)
        for mapping in try mappings(of: process) where mapping.isWritable || mapping.isShared {
            try forEachBlock(of: memory, in: mapping.range) { block, address in
                for (index, scan) in scans.enumerated() {
                    scan.forEachPlace(in: block) { offset in
                        found[index].append(Place(address: address + UInt(offset), mapping: mapping))
                    }
                }
            }
        }
        return found
    }

    /// The whole memory of a process, as the kernel describes it to root.
    public static func mappings(of process: Int32) throws -> [Mapping] {
        guard let file = fopen("/proc/\(process)/smaps", "re") else {
            throw Unreadable(what: "/proc/\(process)/smaps")
        }
        defer { fclose(file) }
        var found: [Mapping] = []
        var line = [CChar](repeating: 0, count: 8192)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(
                decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let fields = text.split(separator: " ", maxSplits: 5, omittingEmptySubsequences: true)
            guard let first = fields.first else { continue }
            let ends = first.split(separator: "-").compactMap { UInt($0, radix: 16) }
            if ends.count == 2, fields.count >= 5 {
                found.append(
                    Mapping(
                        range: ends[0]..<ends[1], permissions: String(fields[1]),
                        name: fields.count > 5 ? String(fields[5].drop { $0 == " " }) : ""))
            } else if first == "VmFlags:", let last = found.indices.last {
                found[last].flags = Set(text.split(separator: " ").dropFirst().map(String.init))
            } else if fields.count == 3, fields[2] == "kB", let last = found.indices.last {
                found[last].sizes[String(first.dropLast())] = (Int(fields[1]) ?? 0) * 1024
            }
        }
        return found
    }

    /// Shows the readable parts of a range in blocks that overlap by less than a half of a secret, so that none is missed
    /// and none counted twice. What was read is wiped: a later scan of this process would find it.
    private static func forEachBlock(
        of file: Int32, in range: Range<UInt>, _ body: (UnsafeRawBufferPointer, UInt) -> Void
    ) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 16)
        defer {
            Wipe.clear(buffer)
            buffer.deallocate()
        }
        var address = range.lowerBound
        while address < range.upperBound {
            let wanted = min(blockSize, Int(range.upperBound - address))
            let count = pread(file, buffer.baseAddress, wanted, off_t(bitPattern: address))
            guard count > 0 else {
                // One page that cannot be read says nothing about the next.
                address += 4096
                continue
            }
            body(UnsafeRawBufferPointer(rebasing: buffer[..<count]), address)
            address += UInt(count)
            if address < range.upperBound, count > halfSize { address -= UInt(halfSize - 1) }
        }
    }

    /// Calls `body` with the offset of each half in a block.
    func forEachPlace(in block: UnsafeRawBufferPointer, _ body: (Int) -> Void) {
        guard let start = block.baseAddress else { return }
        for complement in complements where block.count >= complement.count {
            // Less than a half, so that no other scan takes it for a secret.
            let first = complement.withUnsafeBytes { ~$0.loadUnaligned(as: UInt32.self) }
            let last = start + (block.count - complement.count)
            var next = start
            while next <= last, let hit = memchr(next, Int32(~complement[0]), last - next + 1) {
                let candidate = UnsafeRawPointer(hit)
                if candidate.loadUnaligned(as: UInt32.self) == first,
                    complement.indices.allSatisfy({
                        candidate.load(fromByteOffset: $0, as: UInt8.self) == ~complement[$0]
                    })
                {
                    body(start.distance(to: candidate))
                }
                next = candidate + 1
            }
        }
    }
}
