import CSystemd
import Glibc
import LinuxSystem
import ProtectionModel

/// A connection to the system bus on which nothing ever waits: calls are queued, answers come to handlers that run inside
/// ``step()``. For one thread. Handlers are released when they can no longer be called.
final class LogindBus {
    typealias Handler = (LogindMessage) -> Void

    private let bus: OpaquePointer
    private(set) var isOpen = true

    /// A handler on its way through C.
    private final class Box {
        let handler: Handler
        init(_ handler: @escaping Handler) { self.handler = handler }
    }

    /// Begins to connect: to the bus at an address, or to the one that `DBUS_SYSTEM_BUS_ADDRESS` or the system names.
    init(address: String?) throws(ProtectionError) {
        var opened: OpaquePointer?
        let result =
            address.map { Self.open(&opened, at: $0) } ?? sd_bus_open_system_with_description(&opened, "candado")
        guard result >= 0, let opened else {
            throw ProtectionError(
                .system(-result), "the system bus cannot be reached",
                cause: SystemError(call: "sd_bus_open_system", errorNumber: -result))
        }
        bus = opened
    }

    private static func open(_ opened: inout OpaquePointer?, at address: String) -> Int32 {
        var made: OpaquePointer?
        var result = sd_bus_new(&made)
        guard result >= 0, let made else { return result }
        result = sd_bus_set_address(made, address)
        if result >= 0 { result = sd_bus_set_bus_client(made, 1) }
        if result >= 0 { result = sd_bus_start(made) }
        guard result >= 0 else {
            sd_bus_unref(made)
            return result
        }
        opened = made
        return 0
    }

    // Without flushing: that would wait.
    deinit { sd_bus_close_unref(bus) }

    /// Our own name on the bus; nil until the bus has given it, which is waited for by nobody.
    var uniqueName: String? {
        var name: UnsafePointer<CChar>?
        guard isOpen, sd_bus_is_ready(bus) > 0, sd_bus_get_unique_name(bus, &name) >= 0, let name else { return nil }
        return String(cString: name)
    }

    /// May change in ``step()`` while the connection is being made.
    var descriptor: Int32 { isOpen ? sd_bus_get_fd(bus) : -1 }

    /// `POLLIN` and `POLLOUT`, which are the same numbers as their counterparts of a poll set.
    var wantedEvents: PollEvents {
        guard isOpen else { return [] }
        let events = sd_bus_get_events(bus)
        return events > 0 ? PollEvents(rawValue: UInt32(events)) : []
    }

    /// In how many seconds ``step()`` has to be called whatever comes; nil for never.
    var secondsLeft: Double? {
        guard isOpen else { return nil }
        var time = UInt64.max
        guard sd_bus_get_timeout(bus, &time) >= 0, time != .max else { return nil }
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        let seconds = Double(now.tv_sec) + Double(now.tv_nsec) / 1_000_000_000
        return max(0, Double(time) / 1_000_000 - seconds)
    }

    /// Does one piece of the work that is there; false when there was none. Throws when the connection is gone, and from
    /// then on.
    func step() throws(SystemError) -> Bool {
        guard isOpen else { throw SystemError(call: "sd_bus_process", errorNumber: ErrorNumber.connectionReset) }
        let result = sd_bus_process(bus, nil)
        if result >= 0 { return result > 0 }
        isOpen = false
        throw SystemError(call: "sd_bus_process", errorNumber: -result)
    }

    /// Asks the bus for the messages that a rule names, and hands them over. Throws when the rule cannot be queued; a bus
    /// that refuses it ends the connection.
    func match(_ rule: String, _ handler: @escaping Handler) throws(SystemError) {
        let box = Unmanaged.passRetained(Box(handler))
        var slot: OpaquePointer?
        let result = sd_bus_add_match_async(bus, &slot, rule, Self.handle, nil, box.toOpaque())
        try finish("sd_bus_add_match_async", result, slot, box)
    }

    /// Calls a method whose arguments are all strings. The handler gets the answer, which may be an error, exactly once,
    /// unless the connection is dropped before. `seconds` nil is the system's limit of 25 s.
    func call(
        _ destination: String, _ path: String, _ interface: String, _ member: String, _ arguments: [String] = [],
        seconds: Double? = nil, _ handler: @escaping Handler
    ) throws(SystemError) {
        var made: OpaquePointer?
        var result = sd_bus_message_new_method_call(bus, &made, destination, path, interface, member)
        guard result >= 0, let message = made else {
            throw SystemError(call: "sd_bus_message_new_method_call", errorNumber: -result)
        }
        defer { sd_bus_message_unref(message) }
        for argument in arguments where result >= 0 {
            result = sd_bus_message_append_basic(
                message, CChar(bitPattern: LogindMessage.Kind.string.rawValue), argument)
        }
        // A service that is not there is not started for this.
        if result >= 0 { result = sd_bus_message_set_auto_start(message, 0) }
        guard result >= 0 else { throw SystemError(call: "sd_bus_message_append_basic", errorNumber: -result) }
        let box = Unmanaged.passRetained(Box(handler))
        var slot: OpaquePointer?
        let limit = seconds.map { UInt64($0 * 1_000_000) } ?? 0
        result = sd_bus_call_async(bus, &slot, message, Self.handle, box.toOpaque(), limit)
        try finish("sd_bus_call_async", result, slot, box)
    }

    private static let handle: sd_bus_message_handler_t = { message, box, _ in
        if let message, let box {
            Unmanaged<Box>.fromOpaque(box).takeUnretainedValue().handler(LogindMessage(pointer: message))
        }
        return 0
    }

    /// Lets the connection own the slot, and the slot the box.
    private func finish(
        _ call: String, _ result: Int32, _ slot: OpaquePointer?, _ box: Unmanaged<Box>
    ) throws(SystemError) {
        guard result >= 0, let slot else {
            box.release()
            throw SystemError(call: call, errorNumber: -result)
        }
        sd_bus_slot_set_destroy_callback(slot) { box in
            if let box { Unmanaged<Box>.fromOpaque(box).release() }
        }
        // The connection holds the slot from now on, and we do not.
        sd_bus_slot_set_floating(slot, 1)
        sd_bus_slot_unref(slot)
    }
}
