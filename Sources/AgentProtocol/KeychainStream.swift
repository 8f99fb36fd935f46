import KeychainModel
import LinuxSystem
import SecretMemory
import Synchronization

/// Why a stream of keychain messages ends.
public enum KeychainStreamTrouble: Error {
    /// The other end is closed.
    case ended
    /// The other end took longer than it may.
    case silent
    /// It sent what nobody sends.
    case malformed(MalformedMessage)
    /// There is no memory for a secret that it sent.
    case outOfMemory(KeychainError)
    case system(SystemError)
}

/// One end of a stream of keychain messages. Secrets go from the socket into secret memory and back, and are nowhere in
/// between. One thread at a time may use it; ``shutDown()`` is thread-safe.
public final class KeychainStream: Sendable {
    /// Seconds for the rest of a message that has begun, and for a message to be taken by the other end.
    public static let patience = 10.0

    private let socket: Int32
    private let calls: any InterprocessCalls
    private let system: any SystemCalls
    private let patience: Double
    /// Calls of ``look(_:)`` in a row that waited for nothing, and how many do not wait next.
    private let looksInVain = Atomic<Int>(0)
    private let looksToSkip = Atomic<Int>(0)

    /// Seconds.
    private static let lookingTime = 120e-6

    /// Takes over a descriptor.
    public init(
        _ socket: consuming Descriptor, _ calls: any InterprocessCalls, patience: Double = KeychainStream.patience
    ) {
        system = socket.system
        self.socket = socket.release()
        self.calls = calls
        self.patience = patience
    }

    deinit { try? system.close(socket) }

    /// Ends it: whoever waits at one of its ends goes on.
    public func shutDown() { calls.shutDown(socket) }

    // MARK: Receiving

    /// A message as it came.
    public struct Received: Sendable {
        public let head: KeychainMessage.Head
        public let body: [UInt8]
        public let secrets: [ItemSecret]
    }

    /// The next message. Waits for its beginning so many milliseconds, -1 for ever. `whenSecretsCome` is
    /// called before the first of its secrets is taken.
    public func receive(
        milliseconds: Int32, whenSecretsCome: () -> Void = {}
    ) throws(KeychainStreamTrouble) -> Received {
        let head = try receiveHead(milliseconds)
        let deadline = RealClock().secondsSinceBoot + patience
        let body = try array(head.bodySize, deadline)
        let sizes: [Int]
        do throws(MalformedMessage) {
            sizes = try body.withUnsafeBytes { bytes in
                Result { () throws(MalformedMessage) in try head.secretSizes(in: bytes) }
            }.get()
        } catch {
            throw .malformed(error)
        }
        var secrets: [ItemSecret] = []
        if !sizes.isEmpty { whenSecretsCome() }
        for size in sizes { secrets.append(try secret(size, deadline)) }
        return Received(head: head, body: body, secrets: secrets)
    }

    private func receiveHead(
        _ milliseconds: Int32
    ) throws(KeychainStreamTrouble) -> KeychainMessage.Head {
        let result = withUnsafeTemporaryAllocation(byteCount: KeychainMessage.headSize, alignment: 8) { buffer in
            Result { () throws(KeychainStreamTrouble) in
                let count = try first(buffer, milliseconds)
                try fill(
                    UnsafeMutableRawBufferPointer(rebasing: buffer.dropFirst(count)),
                    RealClock().secondsSinceBoot + patience)
                do throws(MalformedMessage) {
                    return try KeychainMessage.Head(decoding: UnsafeRawBufferPointer(buffer))
                } catch {
                    throw .malformed(error)
                }
            }
        }
        return try result.get()
    }

    /// The first bytes of a message.
    private func first(
        _ buffer: UnsafeMutableRawBufferPointer, _ milliseconds: Int32
    ) throws(KeychainStreamTrouble) -> Int {
        if milliseconds >= 0 {
            if let count = try look(buffer) { return count }
            guard try isReadable(milliseconds) else { throw .silent }
        }
        guard let count = try some(buffer, wait: true) else { throw .silent }
        return count
    }

    /// The agent answers most requests sooner than a sleeping thread wakes: so with a processor for each of the two, the
    /// thread looks again for a while before it sleeps. Where that is in vain it is left for some calls.
    private func look(_ buffer: UnsafeMutableRawBufferPointer) throws(KeychainStreamTrouble) -> Int? {
        let skip = looksToSkip.load(ordering: .relaxed)
        guard WorkerThreads.recommendedCount > 1, skip == 0 else {
            looksToSkip.store(max(0, skip - 1), ordering: .relaxed)
            return try some(buffer, wait: false)
        }
        let clock = RealClock()
        let end = clock.secondsSinceBoot + Self.lookingTime
        repeat {
            if let count = try some(buffer, wait: false) {
                looksInVain.store(0, ordering: .relaxed)
                return count
            }
        } while clock.secondsSinceBoot < end
        let inVain = min(looksInVain.load(ordering: .relaxed) + 1, 6)
        looksInVain.store(inVain, ordering: .relaxed)
        looksToSkip.store(1 << inVain, ordering: .relaxed)
        return nil
    }

    /// Some bytes; nil when none are there and none are waited for.
    private func some(
        _ buffer: UnsafeMutableRawBufferPointer, wait: Bool
    ) throws(KeychainStreamTrouble) -> Int? {
        let packet: ReceivedPacket
        do throws(SystemError) { packet = try calls.receive(socket, into: buffer, wait: wait) } catch {
            switch error.errorNumber {
            case ErrorNumber.wouldBlock: return nil
            case ErrorNumber.connectionReset: throw .ended
            default: throw .system(error)
            }
        }
        guard packet.descriptors.isEmpty, !packet.lacksDescriptors else {
            for descriptor in packet.descriptors { try? system.close(descriptor) }
            throw .malformed(MalformedMessage("descriptors came with the message"))
        }
        guard packet.count > 0 else { throw .ended }
        return packet.count
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer, _ deadline: Double) throws(KeychainStreamTrouble) {
        var done = 0
        while done < buffer.count {
            if let count = try some(UnsafeMutableRawBufferPointer(rebasing: buffer[done...]), wait: false) {
                done += count
            } else {
                guard try isReadable(Self.milliseconds(until: deadline)) else { throw .silent }
            }
        }
    }

    private func isReadable(_ milliseconds: Int32) throws(KeychainStreamTrouble) -> Bool {
        do throws(SystemError) { return try calls.waitUntilReadable(socket, milliseconds: milliseconds) } catch {
            throw .system(error)
        }
    }

    private static func milliseconds(until deadline: Double) -> Int32 {
        Int32(max(0, min(1e6, (deadline - RealClock().secondsSinceBoot) * 1000)).rounded(.up))
    }

    private func array(_ count: Int, _ deadline: Double) throws(KeychainStreamTrouble) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(KeychainStreamTrouble) in try fill(buffer, deadline) }
        }.get()
        return bytes
    }

    private func secret(_ count: Int, _ deadline: Double) throws(KeychainStreamTrouble) -> ItemSecret {
        guard count > 0 else { return ItemSecret() }
        var bytes = try Self.secretBytes(count)
        try bytes.withUnsafeMutableBytes { (buffer) throws(KeychainStreamTrouble) in try fill(buffer, deadline) }
        return ItemSecret(bytes)
    }

    private static func secretBytes(_ count: Int) throws(KeychainStreamTrouble) -> SecretBytes {
        do throws(SecretMemoryError) { return try SecretBytes(count: count) } catch {
            throw .outOfMemory(KeychainError(.outOfMemory, "there is no memory for a secret", cause: error))
        }
    }

    // MARK: Sending

    /// Sends messages, one behind the other, in as few calls as can be.
    public func send(_ messages: [KeychainMessage]) throws(KeychainStreamTrouble) {
        let deadline = RealClock().secondsSinceBoot + patience
        var parts: [Part] = []
        for message in messages {
            parts.append(.plain(message.plain))
            for secret in message.secrets where secret.count > 0 { parts.append(.secret(secret)) }
        }
        var index = 0
        var offset = 0
        while index < parts.count {
            var count = try sendSome(parts[index...].prefix(Self.partsAtOnce), from: offset, deadline)
            while index < parts.count, count >= parts[index].count - offset {
                count -= parts[index].count - offset
                offset = 0
                index += 1
            }
            offset += count
        }
    }

    private static let partsAtOnce = 16

    private enum Part {
        case plain([UInt8])
        case secret(ItemSecret)

        var count: Int {
            switch self {
            case .plain(let bytes): bytes.count
            case .secret(let secret): secret.count
            }
        }

        func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
            switch self {
            case .plain(let bytes): bytes.withUnsafeBytes(body)
            case .secret(let secret): secret.withUnsafeBytes(body)
            }
        }
    }

    private func sendSome(
        _ parts: ArraySlice<Part>, from offset: Int, _ deadline: Double
    ) throws(KeychainStreamTrouble) -> Int {
        while true {
            let result = send(parts, from: offset, [])
            switch result {
            case .success(let count): return count
            case .failure(let error):
                switch error.errorNumber {
                case ErrorNumber.wouldBlock:
                    guard try isWritable(Self.milliseconds(until: deadline)) else { throw .silent }
                case ErrorNumber.brokenPipe, ErrorNumber.connectionReset: throw .ended
                default: throw .system(error)
                }
            }
        }
    }

    /// Collects the addresses of all parts, each inside the closure that shows it.
    private func send(
        _ parts: ArraySlice<Part>, from offset: Int, _ collected: [UnsafeRawBufferPointer]
    ) -> Result<Int, SystemError> {
        guard let part = parts.first else {
            return Result { () throws(SystemError) in try calls.sendSome(socket, collected) }
        }
        return part.withBytes { bytes in
            send(
                parts.dropFirst(), from: 0,
                collected + [UnsafeRawBufferPointer(rebasing: bytes.dropFirst(offset))])
        }
    }

    private func isWritable(_ milliseconds: Int32) throws(KeychainStreamTrouble) -> Bool {
        do throws(SystemError) { return try calls.waitUntilWritable(socket, milliseconds: milliseconds) } catch {
            throw .system(error)
        }
    }
}
