import AgentProtocol
import LinuxSystem
import ProtectionModel
import SecretMemory

/// The one place into which all packets are received: in secret memory, since a packet may hold a passcode, and zeroed
/// after each.
final class PacketBuffer {
    /// What a socket had.
    enum Content {
        /// A request, with its passcode if it is an `unlock`.
        case request(AgentFrame, AgentRequest, PasscodeTry?)
        /// A request that cannot be served for want of memory.
        case refused(AgentFrame, ProtectionError)
        /// Nothing yet.
        case nothing
        /// The other end is closed, or the connection broken.
        case closed
        /// What no client sends.
        case malformed(String)
    }

    private let system: any SystemCalls
    private let calls: any InterprocessCalls
    // One byte more than a message has: a longer one is noticed.
    private var bytes: SecretBytes

    init(system: any SystemCalls, calls: any InterprocessCalls) throws(ProtectionError) {
        self.system = system
        self.calls = calls
        do { bytes = try SecretBytes(count: AgentFrame.maximumSize + 1) } catch {
            throw ProtectionError(.secretMemory, "memory for secrets cannot be had", cause: error)
        }
    }

    /// Takes the next packet of a socket, without waiting.
    func receive(_ socket: Int32) -> Content {
        bytes.withUnsafeMutableBytes { buffer in
            let packet: ReceivedPacket
            do throws(SystemError) {
                packet = try calls.receive(socket, into: buffer, wait: false)
            } catch {
                return error.errorNumber == ErrorNumber.wouldBlock ? .nothing : .closed
            }
            let received = UnsafeMutableRawBufferPointer(rebasing: buffer[..<packet.count])
            defer { Wipe.clear(received) }
            for descriptor in packet.descriptors { try? system.close(descriptor) }
            if packet.count == 0, packet.descriptors.isEmpty { return .closed }
            guard !packet.isTruncated, packet.descriptors.isEmpty else {
                return .malformed(packet.isTruncated ? "the message is too long" : "descriptors came with the message")
            }
            return Self.decode(UnsafeRawBufferPointer(received))
        }
    }

    /// Takes everything that a socket has, and looks at none of it.
    func discardAll(_ socket: Int32) {
        while true {
            let isMore = bytes.withUnsafeMutableBytes { buffer in
                guard let packet = try? calls.receive(socket, into: buffer, wait: false) else { return false }
                Wipe.clear(UnsafeMutableRawBufferPointer(rebasing: buffer[..<packet.count]))
                for descriptor in packet.descriptors { try? system.close(descriptor) }
                return packet.count > 0
            }
            if !isMore { return }
        }
    }

    private static func decode(_ packet: UnsafeRawBufferPointer) -> Content {
        let decoded: (frame: AgentFrame, request: AgentRequest)
        do throws(MalformedMessage) {
            decoded = try AgentRequest.decode(packet)
        } catch {
            return .malformed(error.description)
        }
        guard case .unlock(let size) = decoded.request else { return .request(decoded.frame, decoded.request, nil) }
        let passcode = UnsafeRawBufferPointer(rebasing: packet.suffix(size))
        do throws(ProtectionError) {
            return .request(decoded.frame, decoded.request, try PasscodeTry(copying: passcode))
        } catch {
            return .refused(decoded.frame, error)
        }
    }
}
