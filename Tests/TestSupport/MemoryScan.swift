import Glibc
import SecretMemory

/// Looks for a secret in this process's own memory, by way of `/proc/self/mem`.
///
/// The pattern is kept as its complement, and what is read lies in a mapping that is left out, so that the scan does
/// not find itself. Memory of `memfd_secret` cannot be read at all: a test that wants to see the secret where it
/// belongs, as its positive control, calls `SecretMemory.configure(allowSecretMemoryDescriptor: false)` first. Run it
/// in a process of its own (`#expect(processExitsWith:)`), because other tests' memory is none of its business.
///
/// Other processes, and what was written of them into a file, are looked at by `MemoryScan+Processes`.
public struct MemoryScan: Sendable {
    /// Any of these halves found counts: a key may survive in part.
    let complements: [[UInt8]]
    static let halfSize = 16

    /// A scan for a secret, of which the first 32 bytes are looked for.
    public init(for secret: borrowing SecretBytes) {
        complements = secret.withUnsafeBytes { bytes in
            stride(from: 0, to: min(bytes.count, 2 * Self.halfSize), by: Self.halfSize).map { start in
                bytes[start..<min(start + Self.halfSize, bytes.count)].map { ~$0 }
            }
        }
    }

    /// How often a half of the secret is in memory, times a half: 1 for one whole copy. Throws when the memory cannot
    /// be read.
    public func copies() throws -> Double {
        var halves = 0
        try Self.forEachBlock { block in
            forEachPlace(in: block) { _ in halves += 1 }
        }
        return Double(halves) / Double(complements.count)
    }

    /// Thrown when the memory cannot be read.
    public struct Unreadable: Error {
        public let what: String
    }

    static let blockSize = 1 << 20
    private static let pageSize = 4096

    /// Shows every readable part of memory. A pattern across the border of two blocks is seen once: blocks overlap.
    private static func forEachBlock(_ body: (UnsafeRawBufferPointer) -> Void) throws {
        let memory = open("/proc/self/mem", O_RDONLY)
        guard memory >= 0 else { throw Unreadable(what: "/proc/self/mem") }
        defer { close(memory) }
        guard let buffer = mmap(nil, blockSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            buffer != MAP_FAILED
        else { throw Unreadable(what: "a buffer") }
        defer { munmap(buffer, blockSize) }
        let own = UInt(bitPattern: buffer)
        for mapping in try mappings() {
            var ranges = [mapping]
            if mapping.contains(own) {
                ranges = [mapping.lowerBound..<own, (own + UInt(blockSize))..<mapping.upperBound]
            }
            for range in ranges {
                var address = range.lowerBound
                while address < range.upperBound {
                    let wanted = min(blockSize, Int(range.upperBound - address))
                    let got = pread(memory, buffer, wanted, off_t(bitPattern: address))
                    guard got > 0 else {
                        address += UInt(pageSize)
                        continue
                    }
                    body(UnsafeRawBufferPointer(start: buffer, count: got))
                    // One byte less than the pattern: none is counted twice, none is missed.
                    address +=
                        UInt(got) - (got > halfSize && address + UInt(got) < range.upperBound ? UInt(halfSize - 1) : 0)
                }
            }
        }
    }

    private static func mappings() throws -> [Range<UInt>] {
        guard let file = fopen("/proc/self/maps", "r") else { throw Unreadable(what: "/proc/self/maps") }
        defer { fclose(file) }
        var ranges: [Range<UInt>] = []
        var line = [CChar](repeating: 0, count: 4096)
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let fields = text.split(separator: " ", maxSplits: 2)
            let ends = fields[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
            guard fields.count > 1, ends.count == 2, fields[1].hasPrefix("r"), !text.contains("[v") else { continue }
            ranges.append(ends[0]..<ends[1])
        }
        return ranges
    }
}
