// The names are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

@c @implementation
public func candado_use_home(_ path: UnsafePointer<CChar>?) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.useHome(path)))
}

@c @implementation
public func candado_connect_agent() -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.connect()))
}

@c @implementation
public func candado_lock_state() -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.lockState()))
}

@c @implementation
public func candado_can_read(_ protectionClass: Int32) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.canRead(protectionClass)))
}

@c @implementation
public func candado_events_open() -> candado_events {
    candado_library_result(AgentFunctions.subscribe())
}

@c @implementation
public func candado_events_descriptor(_ events: candado_events) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.descriptor(events)))
}

@c @implementation
public func candado_events_next(_ events: candado_events, _ event: UnsafeMutablePointer<candado_event>?) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.next(events, event)))
}

@c @implementation
public func candado_events_close(_ events: candado_events) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(AgentFunctions.unsubscribe(events)))
}

private enum AgentFunctions {
    @inline(never)
    static func useHome(_ text: UnsafePointer<CChar>?) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            var home: KeybagHome?
            if text != nil {
                let path = try Arguments.path(text)
                // The process may stand somewhere else by the time the agent is needed.
                let directory = try protecting { () throws(ProtectionError) in try WorkingDirectory.absolute(path) }
                home = KeybagHome(directory: directory)
            }
            Library.home.use(home)
            return 0
        }
    }

    @inline(never)
    static func connect() -> Int64 {
        outcome { () throws(CallFailure) in
            let protection = try Library.protection()
            // A connection that was made before may be lost since.
            if let agent = protection.agent, !agent.isConnected {
                try protecting { () throws(ProtectionError) in _ = try agent.status() }
            }
            return 0
        }
    }

    @inline(never)
    static func lockState() -> Int64 {
        outcome { () throws(CallFailure) in Int64(EventQueue.number(of: try Library.protection().lockState)) }
    }

    @inline(never)
    static func canRead(_ number: Int32) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            let protectionClass = try Arguments.protectionClass(number)
            return try Library.protection().canRead(protectionClass) ? 1 : 0
        }
    }

    @inline(never)
    static func subscribe() -> Int64 {
        outcome { () throws(CallFailure) in
            let protection = try Library.protection()
            let queue = try calling { () throws(SystemError) in try EventQueue() }
            queue.subscribe(to: protection)
            guard let handle = Library.subscriptions.insert(queue) else {
                throw .system(EMFILE, "this process has too many subscriptions")
            }
            return handle
        }
    }

    @inline(never)
    static func descriptor(_ handle: candado_events) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withSubscription(handle) { (subscription) throws(CallFailure) in
                guard let descriptor = subscription.descriptor else { throw .closedHandle }
                return Int64(descriptor)
            }
        }
    }

    @inline(never)
    static func next(_ handle: candado_events, _ event: UnsafeMutablePointer<candado_event>?) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.withSubscription(handle) { (subscription) throws(CallFailure) in
                let place = try Arguments.place(event)
                guard let next = try subscription.next() else { return 0 }
                place.pointee = next
                return 1
            }
        }
    }

    @inline(never)
    static func unsubscribe(_ handle: candado_events) -> Int64 {
        outcome { () throws(CallFailure) in
            try Library.check()
            guard let (subscription, use) = Library.subscriptions.close(handle) else { throw .closedHandle }
            defer { Library.subscriptions.end(use) }
            subscription.takeUnretainedValue().close()
            return 0
        }
    }
}
