import Cryptography
import LinuxSystem
import ProtectionModel
import SecretMemory
import Synchronization

/// Reads the whole content of a container from front to back, on several threads where it is long.
enum ContainerReader {
    /// Where content goes, in order. Called by one thread at a time.
    typealias Sink = @Sendable (UnsafeRawBufferPointer) throws -> Void

    /// Chunks that one thread opens at a time: about 400 KiB, a group of the container.
    private static let partSize = UInt64(ContainerGeometry.groupChunks) * UInt64(ContainerGeometry.chunkSize)

    /// Hands all content to `sink`. Nothing that does not authenticate is handed over; what came before it was.
    ///
    /// Returns the bytes of content.
    @discardableResult
    static func read(_ file: inout ContainerFile, to sink: @escaping Sink) throws -> UInt64 {
        let length = try file.reading { file, _ in min(file.view.length, file.clippedLength ?? .max) }
        let parts = (length + partSize - 1) / partSize
        if parts <= 2 {
            try withBuffer(Int(min(length, partSize))) { buffer in
                for part in 0..<parts { try readPart(part, of: length, &file, buffer, sink) }
            }
            return length
        }
        let next = Shared<UInt64>(0)
        let failure = Shared<(any Error)?>(nil)
        let gate = OrderedGate()
        let system = file.system
        let number = file.descriptor.number
        let (service, record, lease, view) = (file.service, file.record, file.lease, file.view)
        let (clipped, place) = (file.clippedLength, file.recordPlace)
        WorkerThreads.run(min(4, WorkerThreads.recommendedCount)) { _ in
            do {
                // An open file description of its own: range locks belong to it.
                let name = FilePath("/proc/self/fd/\(number)") ?? .current
                var own = ContainerFile(
                    try system.openFile(name, [.read]), service: service, canWrite: false, record: record, lease: lease,
                    recordPlace: place, view: view)
                own.clippedLength = clipped
                try withBuffer(Int(partSize)) { buffer in
                    while true {
                        let part = next.value.withLock { next in
                            defer { next += 1 }
                            return next
                        }
                        guard part < parts, try readPart(part, of: length, &own, buffer, sink, gate) else { return }
                    }
                }
            } catch {
                failure.value.withLock { $0 = $0 ?? error }
                gate.shut()
            }
        }
        if let error = failure.value.withLock({ $0 }) { throw error }
        return length
    }

    private static func withBuffer(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 4096)
        defer {
            Wipe.clear(buffer)
            buffer.deallocate()
        }
        try body(buffer)
    }

    /// Reads one part and hands it on, in its turn. False when somebody else failed.
    @discardableResult
    private static func readPart(
        _ part: UInt64, of length: UInt64, _ file: inout ContainerFile, _ buffer: UnsafeMutableRawBufferPointer,
        _ sink: Sink, _ gate: OrderedGate? = nil
    ) throws -> Bool {
        let offset = part * partSize
        let wanted = Int(min(partSize, length - offset))
        let target = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        let count = try file.reading { file, cipher in
            try file.readContent(into: target, at: offset, &cipher)
        }
        guard count == wanted else { throw ProtectionError(.busy, "the file was cut short while it was read") }
        guard let gate else {
            try sink(UnsafeRawBufferPointer(target))
            return true
        }
        var problem: (any Error)?
        let passed = gate.pass(part) {
            do {
                try sink(UnsafeRawBufferPointer(target))
                return true
            } catch {
                problem = error
                return false
            }
        }
        if let problem { throw problem }
        return passed
    }
}
