import Glibc
import TestSupport

@testable import LinuxSystem

/// Every implementation of the table of system calls: one suite runs against all.
enum SystemUnderTest: String, CaseIterable, Sendable {
    case kernel
    /// Without what Linux 6.1 lacks.
    case olderKernel
    case intercepted
    case oneByteAtATime

    var calls: any SystemCalls {
        switch self {
        case .kernel: LinuxSystemCalls.shared
        case .olderKernel: LinuxSystemCalls(usesNewCalls: false)
        case .intercepted: InterceptedSystemCalls(LinuxSystemCalls.shared)
        case .oneByteAtATime: ShortCalls.limited(to: 1)
        }
    }
}

/// The `errno` that the body fails with; nil when it does not fail.
func errorNumber(_ body: () throws -> Void) -> Int32? {
    do {
        try body()
        return nil
    } catch {
        return (error as? SystemError)?.errorNumber ?? -1
    }
}

extension SystemCalls {
    /// Writes an array.
    func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int64) throws {
        try bytes.withUnsafeBytes { try writeFully(descriptor, $0, at: offset) }
    }

    /// Reads at most `count` bytes into an array.
    func bytes(_ descriptor: Int32, count: Int, at offset: Int64 = 0) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = try bytes.withUnsafeMutableBytes { try readFully(descriptor, into: $0, at: offset) }
        return Array(bytes.prefix(got))
    }
}
