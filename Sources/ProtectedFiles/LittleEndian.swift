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

    func isZero(_ range: Range<Int>) -> Bool { self[range].allSatisfy { $0 == 0 } }
}
