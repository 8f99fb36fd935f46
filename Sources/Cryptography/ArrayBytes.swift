/// The standard library's own form of these loses the type of the error.
extension Array<UInt8> {
    @inline(__always)
    func withBytes<R: ~Copyable, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try span.withUnsafeBytes(body)
    }

    @inline(__always)
    mutating func withMutableBytes<R, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try withUnsafeMutableBufferPointer { (buffer) throws(E) -> R in try body(UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
