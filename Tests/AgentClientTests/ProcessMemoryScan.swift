import Glibc
import SecretMemory

/// Looks for a file key in the memory of another process, which should be stopped, by way of `/proc/PID/mem`. Only memory
/// that can be written by somebody is looked at: nothing else can hold a key.
struct ProcessMemoryScan {
    /// Any of these halves found counts: a key may survive in part.
    private let complements: [[UInt8]]
    private static let halfSize = 16
    private static let blockSize = 1 << 20

    init(for secret: borrowing SecretBytes) {
        complements = secret.withUnsafeBytes { bytes in
            [0, Self.halfSize].map { start in bytes[start..<(start + Self.halfSize)].map { ~$0 } }
        }
    }

    struct Unreadable: Error { let what: String }

    /// The mappings in which the key, or a half of it, was found, once for each place.
    func places(in process: Int32) throws -> [String] {
        let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw Unreadable(what: "/proc/\(process)/mem") }
        defer { close(memory) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 16)
        defer {
            Wipe.clear(buffer)
            buffer.deallocate()
        }
        var found: [String] = []
        for (range, line) in try Self.mappings(of: process) {
            var address = range.lowerBound
            while address < range.upperBound {
                let wanted = min(Self.blockSize, Int(range.upperBound - address))
                let count = pread(memory, buffer.baseAddress, wanted, off_t(bitPattern: address))
                // Memory that even the kernel does not map can hold what it likes.
                guard count > 0 else { break }
                let block = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                for complement in complements {
                    found += [String](repeating: line, count: Self.count(complement, in: block))
                }
                // Across the border of two blocks it is seen once: they overlap.
                if count == wanted, address + UInt(count) < range.upperBound {
                    address += UInt(count - Self.halfSize + 1)
                } else {
                    address += UInt(count)
                }
            }
        }
        return found
    }

    private static func count(_ complement: [UInt8], in block: UnsafeRawBufferPointer) -> Int {
        guard let start = block.baseAddress, block.count >= complement.count else { return 0 }
        let last = start + (block.count - complement.count)
        var found = 0
        var next = start
        while next <= last, let hit = memchr(next, Int32(~complement[0]), last - next + 1) {
            let candidate = UnsafeRawPointer(hit)
            if candidate.loadUnaligned(fromByteOffset: 1, as: UInt8.self) == ~complement[1],
                complement.indices.allSatisfy({
                    candidate.loadUnaligned(fromByteOffset: $0, as: UInt8.self) == ~complement[$0]
                })
            {
                found += 1
            }
            next = candidate + 1
        }
        return found
    }

    private static func mappings(of process: Int32) throws -> [(Range<UInt>, String)] {
        guard let file = fopen("/proc/\(process)/maps", "re") else { throw Unreadable(what: "maps") }
        defer { fclose(file) }
        var ranges: [(Range<UInt>, String)] = []
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(
                decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let fields = text.split(separator: " ", maxSplits: 2)
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields.count > 1, ends.count == 2, fields[1].hasPrefix("r"),
                fields[1].contains("w") || fields[1].contains("s")
            else { continue }
            ranges.append((ends[0]..<ends[1], text))
        }
        return ranges
    }
}
