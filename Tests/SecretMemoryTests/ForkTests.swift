import Glibc
import Testing

@testable import SecretMemory

/// A secret that a child can let go of.
private final class Holder {
    var secret: SecretBytes?
    init(_ secret: consuming SecretBytes) { self.secret = consume secret }

    func reveal() -> [UInt8] {
        switch secret {
        case .some(let secret): revealed(secret)
        case nil: []
        }
    }
}

/// How a child ended, which ran `body` in a copy of this process and then exited with what it gave.
private enum Ending: Equatable {
    case exited(Int32)
    case signalled(Int32)
}

private func inForkedChild(_ body: () -> Int32) -> Ending {
    let child = fork()
    if child == 0 { exit(body()) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) == -1, errno == EINTR {}
    return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f)
}

private func takesASecret() -> Bool {
    do {
        let secret = try SecretBytes(count: 32)
        return secret.count == 32
    } catch {
        return false
    }
}

/// True when the page at `address` is mapped.
private func isMapped(_ address: UInt) -> Bool {
    var resident: UInt8 = 0
    return mincore(UnsafeMutableRawPointer(bitPattern: address & ~4095), 1, &resident) == 0
}

@Suite struct ForkTests {
    static let kinds = [true, false]

    @Test(arguments: kinds) func aChildThatEndsInMidWriteChangesNothingInItsParent(descriptor: Bool) async {
        await #expect(processExitsWith: .success) { [descriptor] in
            SecretMemory.configure(allowSecretMemoryDescriptor: descriptor)
            let held = Holder(try SecretBytes.random(count: 100))
            let large = Holder(try SecretBytes.random(count: SecretSlab.size + 1))
            let before = (held.reveal(), large.reveal())
            var written = try SecretBytes.random(count: 64)
            let slots = SecretMemory.slotsInUse
            let ending = written.withUnsafeMutableBytes { bytes in
                bytes.copyBytes(from: (0..<32).map { _ in UInt8(0xA5) })
                let ending = inForkedChild {
                    // Letting go of the parent's secrets in the child, and then leaving by the front door.
                    held.secret = nil
                    large.secret = nil
                    return 0
                }
                UnsafeMutableRawBufferPointer(rebasing: bytes[32...]).copyBytes(from: (0..<32).map { _ in UInt8(0x5A) })
                return ending
            }
            #expect(ending == .exited(0))
            #expect(held.reveal() == before.0)
            #expect(large.reveal() == before.1)
            #expect(revealed(written) == [UInt8](repeating: 0xA5, count: 32) + [UInt8](repeating: 0x5A, count: 32))
            #expect(SecretMemory.slotsInUse == slots)
            let next = try SecretBytes(count: 32)
            let zero = next.isAllZero
            #expect(zero)
        }
    }

    @Test(arguments: kinds) func aChildDoesNotHaveItsParentsPages(descriptor: Bool) async {
        await #expect(processExitsWith: .success) { [descriptor] in
            SecretMemory.configure(allowSecretMemoryDescriptor: descriptor)
            let small = try SecretBytes.random(count: 32)
            let large = try SecretBytes.random(count: SecretSlab.size + 1)
            let addresses = [
                small.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) },
                large.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) },
            ]
            #expect(addresses.allSatisfy(isMapped))
            #expect(inForkedChild { addresses.contains(where: isMapped) ? 1 : 0 } == .exited(0))
            #expect(SecretMemory.ownsAddressesOfThisProcess())
            #expect(inForkedChild { SecretMemory.ownsAddressesOfThisProcess() ? 1 : 0 } == .exited(0))
        }
    }

    @Test func aChildMakesSecretsOfItsOwn() async {
        await #expect(processExitsWith: .success) {
            let held = Holder(try SecretBytes.random(count: 32))
            let before = held.reveal()
            let ending = inForkedChild {
                guard let random = try? SecretBytes.random(count: 32) else { return 1 }
                let own = Holder(random)
                guard SecretMemory.ownsAddressesOfThisProcess(), SecretMemory.slotsInUse == 1 else { return 2 }
                let mine = own.reveal()
                // Neither letting go of the parent's secret nor a child of the child's may touch the child's own.
                held.secret = nil
                guard SecretMemory.slotsInUse == 1, own.reveal() == mine else { return 3 }
                guard inForkedChild({ SecretMemory.ownsAddressesOfThisProcess() ? 1 : 0 }) == .exited(0) else {
                    return 4
                }
                return own.reveal() == mine ? 0 : 5
            }
            #expect(ending == .exited(0))
            #expect(held.reveal() == before)
            #expect(SecretMemory.slotsInUse == 1)
        }
    }

    @Test func aChildThatUsesItsParentsSecretStops() async {
        await #expect(processExitsWith: .success) {
            let held = Holder(try SecretBytes.random(count: 32))
            let ending = inForkedChild {
                // Its own first secret may well get the address that the parent's has.
                let own = try? Holder(SecretBytes.random(count: 32))
                close(2)
                return held.reveal().isEmpty ? 1 : own == nil ? 2 : 3
            }
            #expect(ending == .signalled(SIGILL) || ending == .signalled(SIGTRAP))
            #expect(!held.reveal().allSatisfy { $0 == 0 })
        }
    }

    @Test func aForkWhileOtherThreadsTakeSecretsHangsNobody() async {
        await #expect(processExitsWith: .success) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for _ in 0..<20_000 { _ = try SecretBytes(count: 32) }
                }
                group.addTask {
                    for _ in 0..<20 {
                        let ending = inForkedChild { takesASecret() ? 0 : 1 }
                        #expect(ending == .exited(0))
                    }
                }
                try await group.waitForAll()
            }
            #expect(SecretMemory.slotsInUse == 0)
        }
    }
}
