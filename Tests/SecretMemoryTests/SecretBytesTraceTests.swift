import Testing
import TestSupport

@testable import SecretMemory

private final class Holder {
    var secret: SecretBytes?
    init(_ secret: consuming SecretBytes) { self.secret = consume secret }
}

@Suite struct SecretBytesTraceTests {
    @Test func aSecretIsInMemoryOnceWhileItLivesAndNotAfterwards() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read, so the positive control needs this one.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let holder = Holder(try SecretBytes.random(count: 32))
            let scan: MemoryScan
            switch holder.secret {
            case .some(let secret): scan = MemoryScan(for: secret)
            case nil: return
            }
            #expect(try scan.copies() == 1)
            do {
                let second: SecretBytes
                switch holder.secret {
                case .some(let secret): second = try secret.copy()
                case nil: return
                }
                #expect(try scan.copies() == 2)
                let equal = second.count == 32
                #expect(equal)
            }
            #expect(try scan.copies() == 1)
            holder.secret = nil
            #expect(try scan.copies() == 0)
        }
    }

    @Test func theScanFindsACopyInAnArray() async {
        await #expect(processExitsWith: .success) {
            let secret = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: secret)
            // Secret memory cannot be read even by its own process; where there is none, the slot itself is seen.
            let expected = SecretMemory.kind == .secret ? 0.0 : 1.0
            #expect(try scan.copies() == expected)
            let copied = revealed(secret)
            #expect(try scan.copies() >= expected + 1)
            #expect(copied.count == 32)
        }
    }

    @Test func aSecretMadeByAFailingClosureIsGone() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            struct Refused: Error {}
            let source = try SecretBytes.random(count: 32)
            let scan = MemoryScan(for: source)
            #expect(throws: Refused.self) {
                _ = try SecretBytes(count: 32) { (bytes: UnsafeMutableRawBufferPointer) throws(Refused) in
                    source.withUnsafeBytes { bytes.copyMemory(from: $0) }
                    throw Refused()
                }
            }
            #expect(try scan.copies() == 1)
        }
    }
}
