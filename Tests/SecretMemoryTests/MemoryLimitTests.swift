import Glibc
import Testing

@testable import SecretMemory

/// Kilobytes of a line of `/proc/self/status`.
private func status(_ name: String) -> Int? {
    guard let file = fopen("/proc/self/status", "r") else { return nil }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 1024)
    while fgets(&line, Int32(line.count), file) != nil {
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        if text.hasPrefix(name + ":") {
            return Int(text.dropFirst(name.count + 1).filter(\.isNumber))
        }
    }
    return nil
}

/// Root may lock as much as it likes: become nobody, with a limit.
private func limitLockedMemory(to bytes: UInt) -> Bool {
    var limit = rlimit(rlim_cur: bytes, rlim_max: bytes)
    guard setrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit) == 0 else { return false }
    return getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0)
}

private final class Keys {
    var secrets: [Key] = []
    final class Key {
        let bytes: SecretBytes
        init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
    }
}

@Suite struct MemoryLimitTests {
    @Test(arguments: [true, false]) func tenThousandKeysFitTheDefaultLimit(descriptor: Bool) async {
        await #expect(processExitsWith: .success) { [descriptor] in
            #expect(limitLockedMemory(to: 8 << 20))
            SecretMemory.configure(allowSecretMemoryDescriptor: descriptor)
            let keys = Keys()
            for _ in 0..<10_000 { keys.secrets.append(Keys.Key(try SecretBytes.random(count: 32))) }
            #expect(SecretMemory.kind != .unlocked)
            #expect(SecretMemory.slotsInUse == 10_000)
            let locked = try #require(status("VmLck"))
            #expect(locked <= 1024, "\(locked) kB locked")
            #expect(locked >= 10_000 * 32 / 1024)
            keys.secrets.removeAll()
            #expect(SecretMemory.slotsInUse == 0)
        }
    }

    @Test func withoutLockedMemoryItWorksAndSaysSo() async {
        await #expect(processExitsWith: .success) {
            #expect(limitLockedMemory(to: 0))
            let key = try SecretBytes.random(count: 32)
            let zero = key.isAllZero
            #expect(!zero)
            #expect(SecretMemory.kind == .unlocked)
        }
    }

    @Test(arguments: [true, false]) func reachingTheLimitIsSurvivedAndReported(descriptor: Bool) async {
        await #expect(processExitsWith: .success) { [descriptor] in
            SecretMemory.configure(allowSecretMemoryDescriptor: descriptor)
            #expect(limitLockedMemory(to: UInt(2 * SecretSlab.size)))
            let keys = Keys()
            for _ in 0..<(2 * SecretSlab.slotCount) { keys.secrets.append(Keys.Key(try SecretBytes.random(count: 32))) }
            #expect(SecretMemory.kind != .unlocked)
            keys.secrets.append(Keys.Key(try SecretBytes.random(count: 32)))
            #expect(SecretMemory.kind == .unlocked)
            let last = try #require(keys.secrets.last)
            let zero = last.bytes.isAllZero
            #expect(!zero)
        }
    }

    @Test func ordinaryLockedMemoryCanBeAskedFor() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            #expect(SecretMemory.kind == .locked)
        }
    }

    @Test func slotsThatWereGivenBackAreUsedAgain() async {
        await #expect(processExitsWith: .success) {
            let keys = Keys()
            var locked: [Int?] = []
            for _ in 0..<5 {
                for _ in 0..<5000 { keys.secrets.append(Keys.Key(try SecretBytes(count: 32))) }
                locked.append(status("VmLck"))
                keys.secrets.removeAll()
            }
            #expect(locked.first != nil && Set(locked).count == 1, "\(locked)")
        }
    }

    @Test func largeSecretsGiveTheirMemoryBack() async {
        await #expect(processExitsWith: .success) {
            _ = SecretMemory.kind
            let before = try #require(status("VmLck"))
            do {
                let large = try SecretBytes.random(count: SecretBytes.maximumCount)
                let zero = large.isAllZero
                #expect(!zero)
                #expect(try #require(status("VmLck")) >= before + 1024)
                #expect(SecretMemory.slotsInUse == SecretBytes.maximumCount / SecretMemory.slotSize)
            }
            #expect(status("VmLck") == before)
            #expect(SecretMemory.slotsInUse == 0)
        }
    }

    @Test func aHardenedProcessMayNotBeDumped() async {
        await #expect(processExitsWith: .success) {
            let before = try isDumpable()
            #expect(before)
            #expect(SecretMemory.hardenProcess())
            let after = try isDumpable()
            #expect(!after)
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
            #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
        }
    }
}

/// `prctl(PR_GET_DUMPABLE)`. Swift does not import functions of many arities, so it is looked up by name.
private func isDumpable() throws -> Bool {
    typealias Function = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
    let symbol = try #require(dlsym(nil, "prctl"))
    return unsafeBitCast(symbol, to: Function.self)(3, 0, 0, 0, 0) == 1
}
