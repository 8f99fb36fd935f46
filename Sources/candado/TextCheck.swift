/// Tells whether bytes that come in parts do a terminal no harm: UTF-8, and no controls but white space.
///
/// A character may begin in one part and end in the next. One that the last part leaves unfinished is let pass: a
/// terminal shows it as broken, no more.
struct TextCheck: Sendable {
    /// Bytes that the present character still needs.
    private var missing = 0
    /// What its next byte may be (Unicode 15, table 3-7): nothing overlong, no surrogates, nothing above U+10FFFF.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Takes the next part. False when it is not text; no more may be asked then.
    mutating func accepts(_ part: UnsafeRawBufferPointer) -> Bool {
        for byte in part {
            if missing > 0 {
                guard allowed.contains(byte) else { return false }
                missing -= 1
                allowed = 0x80...0xBF
                continue
            }
            switch byte {
            case 0x08...0x0D, 0x20...0x7E: break
            // U+0080 to U+009F are controls too: U+009B begins a sequence as ESC [ does.
            case 0xC2: expect(1, 0xA0...0xBF)
            case 0xC3...0xDF: expect(1)
            case 0xE0: expect(2, 0xA0...0xBF)
            case 0xED: expect(2, 0x80...0x9F)
            case 0xE1...0xEF: expect(2)
            case 0xF0: expect(3, 0x90...0xBF)
            case 0xF1...0xF3: expect(3)
            case 0xF4: expect(3, 0x80...0x8F)
            default: return false
            }
        }
        return true
    }

    private mutating func expect(_ count: Int, _ first: ClosedRange<UInt8> = 0x80...0xBF) {
        missing = count
        allowed = first
    }
}
