import FileProtection
import Glibc

/// The random access rows of `Benchmarks/run`: 4 KiB reads and overwrites at the same places for every contestant.
///
/// Prints the seconds that the work alone took: unlocking and opening are not in it, the sync and the close at the end are.
@main
struct RandomAccess {
    static let blockSize = 4096
    static let usage = """
        usage: candado-benchmark --home DIR --passcode-file F VERB PATH NUMBER
          prepare PATH BYTES          make a protected file of so many bytes
          read PATH COUNT             read blocks of a protected file
          overwrite PATH COUNT        overwrite blocks of a protected file, then sync
          plain-prepare, plain-read, plain-overwrite   the same on a plain file
          agent-prepare, agent-read   the same with the agent's keys
          agent-length PATH COUNT     ask for the length of an open file
          agent-empty PATH COUNT      read no bytes
        """

    static func main() {
        let words = CommandLine.arguments
        guard words.count == 8, words[1] == "--home", words[3] == "--passcode-file", let number = UInt64(words[7]),
            let path = FilePath(words[6]), let home = FilePath(words[2]), let passcode = FilePath(words[4])
        else { return finish(64, usage) }
        do {
            let seconds = try run(words[5], path, number) {
                words[5].hasPrefix("agent-")
                    ? try FileProtection.connect(KeybagHome(directory: home)) : try unlock(home, passcode)
            }
            guard let seconds else { return finish(64, usage) }
            print(seconds)
        } catch {
            finish(1, "candado-benchmark: \(words[5]): \(error)")
        }
    }

    static func finish(_ status: Int32, _ text: String) {
        let line = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, line, line.count)
        exit(status)
    }

    /// Returns the seconds that the verb took, or nil when there is no such verb.
    static func run(
        _ verb: String, _ path: FilePath, _ number: UInt64, _ unlocked: () throws -> FileProtection
    ) throws -> Double? {
        switch verb {
        case "prepare", "agent-prepare": try prepare(path, number, unlocked())
        case "agent-length": try measureLength(path, number, unlocked())
        case "agent-empty": try measureEmpty(path, number, unlocked())
        case "read", "agent-read": try measure(ProtectedBlocks(path, unlocked(), for: .reading), number, writing: false)
        case "overwrite": try measure(ProtectedBlocks(path, unlocked(), for: .updating), number, writing: true)
        case "plain-prepare": try preparePlain(path, number)
        case "plain-read": try measure(PlainBlocks(path, [.read]), number, writing: false)
        case "plain-overwrite": try measure(PlainBlocks(path, [.read, .write]), number, writing: true)
        default: nil
        }
    }

    /// The passcode file holds the passcode and nothing else, no line feed either.
    static func unlock(_ home: FilePath, _ passcodeFile: FilePath) throws -> FileProtection {
        let system = LinuxSystemCalls.shared
        var size = 0
        let line = try SecretBytes(count: Passcode.maximumCount) { buffer in
            size = try SafeFile.read(passcodeFile, into: buffer, ownerOnly: true, system)
        }
        let passcode = try line.withUnsafeBytes {
            try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[..<size]))
        }
        let protection = try FileProtection.open(KeybagHome(directory: home))
        try protection.unlock(passcode: passcode)
        return protection
    }

    static func prepare(_ path: FilePath, _ size: UInt64, _ protection: FileProtection) throws -> Double {
        try timed {
            let rest = Remaining(size)
            _ = try protection.files.write(to: path) { buffer in
                let count = rest.take(buffer.count)
                UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).initializeMemory(
                    as: UInt8.self, repeating: 0x5a)
                return count
            }
        }
    }

    static func preparePlain(_ path: FilePath, _ size: UInt64) throws -> Double {
        let system = LinuxSystemCalls.shared
        let descriptor = try system.openFile(path, [.write, .create, .truncate])
        let block = [UInt8](repeating: 0x5a, count: 1 << 20)
        return try timed {
            var offset: UInt64 = 0
            while offset < size {
                let count = Int(min(UInt64(block.count), size - offset))
                try block.withUnsafeBytes { bytes in
                    try system.writeFully(
                        descriptor.number, UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: Int64(offset))
                }
                offset += UInt64(count)
            }
            try system.synchronize(descriptor.number, dataOnly: false)
        }
    }

    /// Reads or overwrites `count` blocks at random places; what was written is durable at the end, and the handle closed.
    static func measure(_ file: some Blocks, _ count: UInt64, writing: Bool) throws -> Double {
        let blocks = try file.length / UInt64(blockSize)
        var places = Places()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 4096)
        defer { buffer.deallocate() }
        buffer.initializeMemory(as: UInt8.self, repeating: 0x2b)
        return try timed {
            for _ in 0..<count {
                let offset = places.next() % blocks * UInt64(blockSize)
                if writing {
                    try file.write(UnsafeRawBufferPointer(buffer), at: offset)
                } else {
                    try file.read(into: buffer, at: offset)
                }
            }
            if writing { try file.synchronize() }
            try file.close()
        }
    }

    static func measureLength(_ path: FilePath, _ count: UInt64, _ protection: FileProtection) throws -> Double {
        let file = try protection.open(path, for: .reading)
        let length = try file.length
        return try timed {
            for _ in 0..<count where try file.length != length {
                throw ProtectionError(.invalidArgument, "the length changed")
            }
        }
    }

    static func measureEmpty(_ path: FilePath, _ count: UInt64, _ protection: FileProtection) throws -> Double {
        let file = try protection.open(path, for: .reading)
        let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        return try timed {
            for _ in 0..<count where try file.read(into: nothing, at: 0) != 0 {
                throw ProtectionError(.invalidArgument, "there is something")
            }
        }
    }

    static func timed(_ body: () throws -> Void) throws -> Double {
        let start = ContinuousClock.now
        try body()
        return (ContinuousClock.now - start) / .seconds(1)
    }
}
