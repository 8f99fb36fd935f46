import Cryptography
import Glibc
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// Slows down wrong passcodes: every try is on disk before it is made. It slows someone without access to the file, and
/// promises no more. Thread-safe; processes take turns by a lock on the file.
final class AttemptFile: Sendable {
    private let path: FilePath
    private let system: any SystemCalls
    private let clock: any SystemClock
    private let keys: DeviceKeys
    /// When the last try was made that could not be written down, in seconds since the machine started.
    private let unrecordedTry = Mutex<Double?>(nil)

    init(path: FilePath, keys: DeviceKeys, system: any SystemCalls, clock: any SystemClock) {
        self.path = path
        self.keys = keys
        self.system = system
        self.clock = clock
    }

    /// One try that is being made. While it lives nobody else can make one.
    struct Try: Sendable {
        /// Nil when the file could not be written: then nothing is remembered and nothing erased.
        fileprivate let file: HeldDescriptor?
        /// As it was before the try.
        fileprivate let before: AttemptRecord
        /// As it stands on disk now.
        fileprivate var current: AttemptRecord
    }

    /// What a wrong passcode came to.
    enum Verdict: Hashable, Sendable {
        /// So many wrong ones in a row now.
        case counted(UInt32)
        /// The same as a recent one: it does not count again.
        case repeated
        /// It could not be written down.
        case unrecorded
    }

    /// Makes the file, if nothing of that name is there. `EEXIST` otherwise.
    func create() throws(ProtectionError) {
        let first = try translatingErrors { () throws(CryptographyError) in
            try AttemptRecord().encoded(key: keys.attemptAuthentication)
        }
        var second = AttemptRecord()
        second.counter = 1
        let slots = try translatingErrors { () throws(CryptographyError) in
            first + (try second.encoded(key: keys.attemptAuthentication))
        }
        try writeNewFile(slots)
    }

    private func writeNewFile(_ slots: [UInt8]) throws(ProtectionError) {
        let result = slots.withUnsafeBytes { bytes -> Result<Void, SystemError> in
            Result { () throws(SystemError) in
                try AtomicFile.replace(path, with: bytes, permissions: 0o600, exclusive: true, system)
            }
        }
        if case .failure(let error) = result { throw ProtectionError(error, "the attempt file cannot be made") }
    }

    /// Writes down that a try begins. Throws `tooManyTries` when it is too early; then nothing counts.
    ///
    /// When the file cannot be read or written the try is allowed all the same, once in the longest delay; but this process
    /// alone knows of that try.
    func begin(_ warnings: inout [KeybagWarning]) throws(ProtectionError) -> Try {
        var file = openForWriting(&warnings)
        if let file { lock(file) }
        let loaded = load(file, &warnings)
        // What cannot be read is not written over either.
        if loaded == nil { file = nil }
        let before = loaded ?? AttemptRecord()
        let wait = AttemptPolicy.delay(afterTries: before.tries) - elapsed(since: before)
        guard wait <= 0 else {
            throw ProtectionError(.tooManyTries(retryAfter: wait), "too many wrong passcodes")
        }
        var current = before
        current.tries = before.tries == .max ? .max : before.tries + 1
        current.bootMilliseconds = UInt64(max(0, clock.secondsSinceBoot) * 1000)
        current.epochSeconds = clock.secondsSinceEpoch
        if !store(&current, to: file) {
            warnings.append(loaded == nil ? .attemptFileNotReadable : .attemptFileNotWritable)
            file = nil
            let now = clock.secondsSinceBoot
            try unrecordedTry.withLock { (last) throws(ProtectionError) in
                let wait = Self.wait(after: last, now)
                guard wait <= 0 else {
                    throw ProtectionError(
                        .tooManyTries(retryAfter: wait),
                        "the record of wrong passcodes cannot be used, so this process allows one try an hour")
                }
                last = now
            }
        }
        return Try(file: file, before: before, current: current)
    }

    /// The passcode was right: nothing is remembered.
    func succeed(_ attempt: Try) {
        unrecordedTry.withLock { $0 = nil }
        var record = AttemptRecord()
        record.counter = attempt.current.counter
        _ = store(&record, to: attempt.file)
    }

    /// The passcode was wrong. `digest` stands for what it gave.
    func fail(_ attempt: Try, digest: [UInt8]) -> Verdict {
        guard attempt.file != nil else { return .unrecorded }
        if attempt.before.digests.contains(digest) {
            var record = attempt.before
            record.counter = attempt.current.counter
            _ = store(&record, to: attempt.file)
            return .repeated
        }
        var record = attempt.current
        record.wrong = record.wrong == .max ? .max : record.wrong + 1
        record.digests = Array((record.digests + [digest]).suffix(AttemptRecord.largestDigestCount))
        // A failed write leaves an interrupted try, which counts for the delay.
        guard store(&record, to: attempt.file) else { return .unrecorded }
        return .counted(record.wrong)
    }

    /// Forgets all wrong tries: another credential proved who it is.
    func reset() {
        var ignored: [KeybagWarning] = []
        guard let file = openForWriting(&ignored) else { return }
        lock(file)
        guard let before = load(file, &ignored), !before.isClean else { return }
        var record = AttemptRecord()
        record.counter = before.counter
        _ = store(&record, to: file)
        unrecordedTry.withLock { $0 = nil }
    }

    /// Completed wrong tries since the last success, as far as they are known.
    func wrongTries() -> UInt32 {
        var ignored: [KeybagWarning] = []
        return load(nil, &ignored)?.wrong ?? 0
    }

    /// How long the next try has to wait, in seconds.
    func secondsUntilNextTry() -> Double {
        var ignored: [KeybagWarning] = []
        guard let record = load(nil, &ignored) else {
            return Self.wait(after: unrecordedTry.withLock { $0 }, clock.secondsSinceBoot)
        }
        return max(0, AttemptPolicy.delay(afterTries: record.tries) - elapsed(since: record))
    }

    /// How long the next try that cannot be written down has to wait, in seconds.
    private static func wait(after last: Double?, _ now: Double) -> Double {
        guard let last, now >= last else { return 0 }
        return max(0, AttemptPolicy.longestDelay - (now - last))
    }

    // MARK: The file

    private func openForWriting(_ warnings: inout [KeybagWarning]) -> HeldDescriptor? {
        for _ in 0..<2 {
            do throws(SystemError) {
                return HeldDescriptor(try system.openFile(path, [.read, .write, .noFollow, .nonBlocking]))
            } catch {
                guard error.errorNumber == ENOENT, (try? create()) != nil else { return nil }
                warnings.append(.attemptFileRebuilt)
            }
        }
        return nil
    }

    /// Waits for its turn. Where such locks do not work, two tries at once may count as one.
    private func lock(_ file: HeldDescriptor) {
        _ = try? file.lock(.exclusive, start: 0, count: Int64(AttemptRecord.fileSize), wait: true)
    }

    /// Nil when the file is there and cannot be read. One that is missing or damaged remembers nothing.
    private func load(_ file: HeldDescriptor?, _ warnings: inout [KeybagWarning]) -> AttemptRecord? {
        var bytes = [UInt8](repeating: 0, count: AttemptRecord.fileSize)
        let result = bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(SystemError) in
                if let number = file?.number { return try system.readFully(number, into: buffer, at: 0) }
                return try SafeFile.read(path, into: buffer, ownerOnly: false, system)
            }
        }
        let count: Int
        switch result {
        case .success(let bytes): count = bytes
        case .failure(let error): return error.errorNumber == ENOENT ? AttemptRecord() : nil
        }
        let newest = [0, AttemptRecord.slotSize].compactMap { start -> AttemptRecord? in
            guard count >= start + AttemptRecord.slotSize else { return nil }
            let slot = Array(bytes[start..<(start + AttemptRecord.slotSize)])
            return (try? AttemptRecord(decoding: slot, key: keys.attemptAuthentication)) ?? nil
        }.max { $0.counter < $1.counter }
        if newest == nil { warnings.append(.attemptFileRebuilt) }
        return newest ?? AttemptRecord()
    }

    /// Writes to the slot that does not hold the newest record, durably. False when that cannot be done.
    private func store(_ record: inout AttemptRecord, to file: HeldDescriptor?) -> Bool {
        guard let number = file?.number else { return false }
        record.counter &+= 1
        let offset = Int64(record.counter % 2) * Int64(AttemptRecord.slotSize)
        guard let slot = try? record.encoded(key: keys.attemptAuthentication) else { return false }
        return slot.withUnsafeBytes { bytes in
            do throws(SystemError) {
                try system.writeFully(number, bytes, at: offset)
                try system.synchronize(number, dataOnly: true)
                return true
            } catch {
                return false
            }
        }
    }

    /// Seconds since the last try, asleep or not. After a restart the present delay starts over (Apple Platform Security):
    /// then only the time since the start counts. Where the boot clock does not run, the time of day stands in.
    private func elapsed(since record: AttemptRecord) -> Double {
        let now = clock.secondsSinceBoot
        let then = Double(record.bootMilliseconds) / 1000
        guard now > 0 else { return max(0, Double(clock.secondsSinceEpoch - record.epochSeconds)) }
        return now >= then ? now - then : now
    }
}
