import Glibc

/// Runs a call again while a signal interrupts it. Returns what it returned, or the negated `errno`, which is read
/// before anything else can change it.
@inline(__always)
func repeatedWhileInterrupted<Result: SignedInteger>(_ body: () -> Result) -> Int {
    while true {
        let result = body()
        if result != -1 { return Int(result) }
        let number = errno
        if number != EINTR { return -Int(number) }
    }
}

/// The value of a result that ``repeatedWhileInterrupted(_:)`` gave, or the error.
@inline(__always)
@discardableResult
func checked(
    _ call: StaticString, _ result: Int, _ path: FilePath? = nil, attribute: String? = nil
) throws(SystemError) -> Int {
    if result >= 0 { return result }
    throw SystemError(call: "\(call)", errorNumber: Int32(-result), path: path, attribute: attribute)
}
