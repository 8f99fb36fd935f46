/// Fixed-width little-endian numbers in raw bytes: all formats of this module use them.
extension UnsafeMutableRawBufferPointer {
    func store<Number: FixedWidthInteger>(_ number: Number, at offset: Int) {
        storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
    }

    func store(_ bytes: [UInt8], at offset: Int) {
        for (index, byte) in bytes.enumerated() { self[offset + index] = byte }
    }
}

extension UnsafeRawBufferPointer {
    func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }

    func bytes(_ range: Range<Int>) -> [UInt8] { Array(self[range]) }

    func isZero(_ range: Range<Int>) -> Bool {
        var any: UInt8 = 0
        var index = range.lowerBound
        while index < range.upperBound {
            any |= loadUnaligned(fromByteOffset: index, as: UInt8.self)
            index += 1
        }
        return any == 0
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes are the array's: a word at a time, since every operation compares a kilobyte of header.
    func areEqual(to other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        return other.withUnsafeBytes { other in
            let words = count / 8
            for word in 0..<words
            where loadUnaligned(fromByteOffset: word * 8, as: UInt64.self)
                != other.loadUnaligned(fromByteOffset: word * 8, as: UInt64.self)
            {
                return false
            }
            return self[(words * 8)...].elementsEqual(other[(words * 8)...])
        }
    }
}
