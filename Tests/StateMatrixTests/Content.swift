import FileProtection

/// Bytes that differ from place to place, so that a chunk in the wrong place shows.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for _ in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        bytes.append(UInt8(truncatingIfNeeded: state))
    }
    return bytes
}

/// The code of the error that `body` throws; nil when it throws none.
func code<Value>(_ body: () throws -> Value) -> ProtectionError.Code? {
    do {
        _ = try body()
        return nil
    } catch {
        return (error as? ProtectionError)?.code
    }
}

extension ProtectedFile {
    /// All content through positioned reads.
    func allContent() throws -> [UInt8] { try read(Int(try length), at: 0) }

    func write(_ bytes: [UInt8], at offset: Int) throws {
        try bytes.withUnsafeBytes { try write($0, at: UInt64(offset)) }
    }

    func read(_ count: Int, at offset: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: count)
        let got = try bytes.withUnsafeMutableBytes { try read(into: $0, at: UInt64(offset)) }
        return Array(bytes[..<got])
    }
}
