import ProtectionModel
import SecretMemory

/// A service of class keys that a test can lock and unlock, with a passcode set.
public protocol ClassKeyServiceHarness {
    var service: any ClassKeyService { get }
    func unlock() throws
    func lock() throws
}

/// What every implementation of `ClassKeyService` has to do: the cells of the state matrix (apple-semantics 1.3) that keys
/// decide, and what holds in every state. Returns what was found wrong, in words: nothing when all is well.
public enum ClassKeyServiceSuite {
    /// `makeHarness` gives a fresh keybag each time, before the first unlock.
    public static func run(_ makeHarness: () throws -> any ClassKeyServiceHarness) throws -> [String] {
        var findings = Findings()
        for state in LockState.allCases {
            try checkMatrix(state, try makeHarness(), &findings)
            try checkOpenLeases(state, try makeHarness(), &findings)
        }
        try checkRecords(try makeHarness(), &findings)
        try checkBatches(try makeHarness(), &findings)
        return findings.lines
    }

    private struct Findings {
        var lines: [String] = []

        mutating func expect(_ condition: Bool, _ what: String) {
            if !condition { lines.append(what) }
        }

        /// The right outcome of one cell: success, or `locked` naming the class.
        mutating func expect<Value>(
            _ allowed: Bool, _ what: String, lockedClass: ProtectionClass? = nil,
            _ body: () throws(ProtectionError) -> Value
        ) -> Value? {
            do throws(ProtectionError) {
                let value = try body()
                expect(allowed, "\(what): worked, but must be refused as locked")
                return value
            } catch {
                if allowed {
                    lines.append("\(what): \(error), but must work")
                } else if case .locked(let named) = error.code {
                    expect(
                        lockedClass == nil || named == nil || named == lockedClass,
                        "\(what): locked names \(String(describing: named))")
                } else {
                    lines.append("\(what): \(error), but must be refused as locked")
                }
                return nil
            }
        }
    }

    /// Columns A, B, C, D.
    private static func canCreate(_ state: LockState) -> [Bool] {
        switch state {
        case .beforeFirstUnlock: [false, true, false, true]
        case .unlocked: [true, true, true, true]
        case .locked: [false, true, true, true]
        }
    }

    private static func canOpen(_ state: LockState) -> [Bool] {
        switch state {
        case .beforeFirstUnlock: [false, false, false, true]
        case .unlocked: [true, true, true, true]
        case .locked: [false, false, true, true]
        }
    }

    /// Makes one record of every class while unlocked, and brings the harness into a state. Before the first unlock only
    /// what that state can make is there.
    private static func prepare(
        _ state: LockState, _ harness: any ClassKeyServiceHarness
    ) throws -> [ProtectionClass: NewFileKey] {
        var files: [ProtectionClass: NewFileKey] = [:]
        if state != .beforeFirstUnlock { try harness.unlock() }
        for protectionClass in ProtectionClass.allCases where harness.service.canWrap(protectionClass) {
            files[protectionClass] = try harness.service.makeFileKey(for: protectionClass, flags: [])
        }
        if state == .locked { try harness.lock() }
        return files
    }

    private static func checkMatrix(
        _ state: LockState, _ harness: any ClassKeyServiceHarness, _ findings: inout Findings
    ) throws {
        let service = harness.service
        let files = try prepare(state, harness)
        findings.expect(service.lockState == state, "the state is \(service.lockState), not \(state)")
        for (index, protectionClass) in ProtectionClass.allCases.enumerated() {
            let cell = "\(state) \(protectionClass.name)"
            let mayCreate = canCreate(state)[index], mayOpen = canOpen(state)[index]
            findings.expect(service.canWrap(protectionClass) == mayCreate, "\(cell): canWrap is wrong")
            findings.expect(service.canUnwrap(protectionClass) == mayOpen, "\(cell): canUnwrap is wrong")
            let made = findings.expect(mayCreate, "\(cell) create", lockedClass: protectionClass) {
                () throws(ProtectionError) in try service.makeFileKey(for: protectionClass, flags: [])
            }
            if let made {
                findings.expect(
                    made.record.protectionClass == protectionClass, "\(cell): the record names another class")
                findings.expect(
                    made.record.keybag == service.keybagIdentifier, "\(cell): the record names another keybag")
                findings.expect(made.lease.protectionClass == protectionClass, "\(cell): the lease names another class")
            }
            guard let file = files[protectionClass] else { continue }
            let opened = findings.expect(mayOpen, "\(cell) open", lockedClass: protectionClass) {
                () throws(ProtectionError) in try service.unwrap(file.record)
            }
            // The same key, which only a lease that still lives can tell.
            if let opened, protectionClass != .complete || state == .unlocked {
                findings.expect(try same(opened, file.lease), "\(cell): another key came back")
            }
            for (target, targetClass) in ProtectionClass.allCases.enumerated() {
                let replaced = "\(cell) replaced by \(targetClass.name)"
                let (old, new) = service.unwrap(file.record, makingFileKeyFor: targetClass)
                let oldLease = findings.expect(mayOpen, "\(replaced), old", lockedClass: protectionClass) {
                    () throws(ProtectionError) in try old.get()
                }
                let newKey = findings.expect(
                    canCreate(state)[target], "\(replaced), new", lockedClass: targetClass
                ) { () throws(ProtectionError) in try new.get() }
                if let oldLease, let opened { findings.expect(try same(oldLease, opened), "\(replaced): another key") }
                if let newKey {
                    findings.expect(newKey.record.protectionClass == targetClass, "\(replaced): of another class")
                    if canOpen(state)[target], let opened {
                        findings.expect(try !same(newKey.lease, opened), "\(replaced): the new key is the old one")
                    }
                }
                let mayChange = mayOpen && canCreate(state)[target]
                let change = "\(cell) to \(targetClass.name)"
                let flags: KeyRecord.Flags = targetClass == .complete ? [.keyWasWeaker] : []
                let record = findings.expect(mayChange, change) { () throws(ProtectionError) in
                    try service.rewrap(file.record, to: targetClass, flags: flags)
                }
                guard let record else { continue }
                findings.expect(
                    record.protectionClass == targetClass && record.flags == flags, "\(change): wrong record")
                if canOpen(state)[target], let lease = try? service.unwrap(record), let opened {
                    findings.expect(try same(lease, opened), "\(change): the file key changed")
                }
            }
        }
    }

    /// Handles that are open when the state changes: A is taken back, the others live on.
    private static func checkOpenLeases(
        _ state: LockState, _ harness: any ClassKeyServiceHarness, _ findings: inout Findings
    ) throws {
        guard state == .unlocked else { return }
        let files = try prepare(.unlocked, harness)
        let second = try files.mapValues { try harness.service.unwrap($0.record) }
        try harness.lock()
        for protectionClass in ProtectionClass.allCases {
            let leases = [files[protectionClass]?.lease, second[protectionClass]].compactMap { $0 }
            findings.expect(leases.count == 2, "\(protectionClass.name): there are no two leases")
            for lease in leases {
                _ = findings.expect(protectionClass != .complete, "\(protectionClass.name) lease after lock") {
                    () throws(ProtectionError) in try use(lease)
                }
            }
        }
        try harness.unlock()
        if let lease = files[.complete]?.lease {
            _ = findings.expect(false, "a class A lease from before the lock") {
                () throws(ProtectionError) in try use(lease)
            }
        }
        if let record = files[.complete]?.record {
            _ = findings.expect(true, "a class A record after the next unlock") {
                () throws(ProtectionError) in try use(try harness.service.unwrap(record))
            }
        }
    }

    private static func checkRecords(_ harness: any ClassKeyServiceHarness, _ findings: inout Findings) throws {
        try harness.unlock()
        let service = harness.service
        func code(_ record: KeyRecord) -> ProtectionError.Code? {
            do throws(ProtectionError) {
                _ = try service.unwrap(record)
                return nil
            } catch { return error.code }
        }
        let other = KeybagIdentifier(bytes: service.keybagIdentifier.bytes.map { ~$0 })
        for protectionClass in ProtectionClass.allCases {
            let name = protectionClass.name
            let first = try service.makeFileKey(for: protectionClass, flags: [.keyWasWeaker]).record
            let second = try service.makeFileKey(for: protectionClass, flags: []).record
            findings.expect(first.flags == [.keyWasWeaker], "\(name): flags are lost")
            findings.expect(first.wrap != second.wrap, "\(name): two files have the same key")
            findings.expect(code(first) == nil, "\(name): a record does not open")
            // Every field is authenticated: flags, generation, wrap; and the keybag's own answer.
            for index in 0..<first.encoded.count where !(4..<20).contains(index) && index > 1 {
                var bytes = first.encoded
                bytes[index] ^= 1
                guard let changed = try? KeyRecord(decoding: bytes) else { continue }
                findings.expect(
                    code(changed) == .damaged(.unwrap),
                    "\(name): byte \(index) changed: \(String(describing: code(changed)))")
            }
            if let other {
                let foreign = KeyRecord(
                    protectionClass: protectionClass, flags: first.flags, generation: first.generation, keybag: other,
                    wrap: first.wrap)
                if let foreign { findings.expect(code(foreign) == .foreignKeybag(other), "\(name): foreign keybag") }
            }
            findings.expect(
                code(KeyRecord(directory: protectionClass, keybag: service.keybagIdentifier)) != nil,
                "\(name): a directory's record gave a key")
        }
    }

    private static func checkBatches(_ harness: any ClassKeyServiceHarness, _ findings: inout Findings) throws {
        try harness.unlock()
        let records = try ProtectionClass.allCases.map { try harness.service.makeFileKey(for: $0, flags: []).record }
        try harness.lock()
        let results = harness.service.unwrap(records)
        let opened = results.map { result in if case .success = result { true } else { false } }
        findings.expect(opened == [false, false, true, true], "a batch while locked gave \(opened)")
    }

    /// Throws what the lease throws.
    private static func use(_ lease: any FileKeyLease) throws(ProtectionError) {
        do {
            try lease.withKey { key in if key.bytes.isAllZero { throw ProtectionError(.cryptography, "a key of zeros") }
            }
        } catch {
            throw (error as? ProtectionError) ?? ProtectionError(.cryptography, "\(error)")
        }
    }

    private static func same(_ first: any FileKeyLease, _ second: any FileKeyLease) throws -> Bool {
        try first.withKey { first in try second.withKey { second in first.bytes.equals(second.bytes) } }
    }
}
