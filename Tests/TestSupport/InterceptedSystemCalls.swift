import Glibc
import LinuxSystem

/// System calls with a stranger in the middle: each is described to a closure that lets it pass, shortens it or fails
/// it, and what succeeded is shown to an observer. For tests. As thread-safe as the two closures are.
public final class InterceptedSystemCalls: SystemCalls {
    /// Decides on a call before it is made. Throwing makes the call fail with that error, unmade; but a descriptor that
    /// is to be closed is closed all the same, as the kernel does.
    public typealias Intercept = @Sendable (SystemCallDescription) throws(SystemError) -> Interception
    /// Sees a call after it succeeded, with its result: the new descriptor, the number of bytes, else 0.
    public typealias Observe = @Sendable (SystemCallDescription, Int) -> Void

    let base: any SystemCalls
    private let intercept: Intercept
    private let observe: Observe

    /// Puts the closures before and after the calls of `base`.
    public init(
        _ base: any SystemCalls, intercept: @escaping Intercept = { _ throws(SystemError) in .proceed },
        observe: @escaping Observe = { _, _ in }
    ) {
        self.base = base
        self.intercept = intercept
        self.observe = observe
    }

    /// `body` gets the number of bytes that it may handle at most; `result` turns its value into what is observed.
    func run<Value>(
        _ call: SystemCallDescription, result: (Value) -> Int = { _ in 0 },
        _ body: (Int) throws(SystemError) -> Value
    ) throws(SystemError) -> Value {
        let decision = try intercept(call)
        var limit = Int.max
        if case .shorten(let count) = decision { limit = max(1, count) }
        let value = try body(limit)
        observe(call, result(value))
        if case .failAfterwards(let number) = decision { throw call.failure(number) }
        return value
    }

    func run(_ call: SystemCallDescription, _ body: () throws(SystemError) -> Void) throws(SystemError) {
        try run(call) { (_: Int) throws(SystemError) in try body() }
    }

    public func open(
        _ path: FilePath, in directory: Int32, _ options: OpenOptions, permissions: UInt32
    ) throws(SystemError) -> Int32 {
        let call = SystemCallDescription(
            .open, path: path, directory: directory, options: options, permissions: permissions)
        let decision = try intercept(call)
        let descriptor = try base.open(path, in: directory, options, permissions: permissions)
        observe(call, Int(descriptor))
        if case .failAfterwards(let number) = decision {
            // Nobody else would close it.
            observe(SystemCallDescription(.close, descriptor: descriptor), 0)
            try? base.close(descriptor)
            throw call.failure(number)
        }
        return descriptor
    }

    public func close(_ descriptor: Int32) throws(SystemError) {
        let call = SystemCallDescription(.close, descriptor: descriptor)
        let decision: Interception
        do {
            decision = try intercept(call)
        } catch {
            observe(call, 0)
            try? base.close(descriptor)
            throw error
        }
        // Seen before it happens: afterwards another thread may have been given the same number.
        observe(call, 0)
        try base.close(descriptor)
        if case .failAfterwards(let number) = decision { throw call.failure(number) }
    }

    public func duplicate(_ descriptor: Int32) throws(SystemError) -> Int32 {
        let call = SystemCallDescription(.duplicate, descriptor: descriptor)
        _ = try intercept(call)
        let copy = try base.duplicate(descriptor)
        observe(call, Int(copy))
        return copy
    }

    public func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        try run(
            SystemCallDescription(.read, descriptor: descriptor, count: Int64(buffer.count)), result: { $0 }
        ) { (limit) throws(SystemError) in
            try base.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit)))
        }
    }

    public func write(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) throws(SystemError) -> Int {
        try run(
            SystemCallDescription(.write, descriptor: descriptor, count: Int64(buffer.count), bytes: buffer),
            result: { $0 }
        ) { (limit) throws(SystemError) in
            try base.write(descriptor, UnsafeRawBufferPointer(rebasing: buffer.prefix(limit)))
        }
    }

    public func read(
        _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try run(
            SystemCallDescription(.readAt, descriptor: descriptor, offset: offset, count: Int64(buffer.count)),
            result: { $0 }
        ) { (limit) throws(SystemError) in
            try base.read(
                descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit)), at: offset)
        }
    }

    public func write(
        _ descriptor: Int32, _ buffer: UnsafeRawBufferPointer, at offset: Int64
    ) throws(SystemError) -> Int {
        try run(
            SystemCallDescription(
                .writeAt, descriptor: descriptor, offset: offset, count: Int64(buffer.count), bytes: buffer),
            result: { $0 }
        ) { (limit) throws(SystemError) in
            try base.write(descriptor, UnsafeRawBufferPointer(rebasing: buffer.prefix(limit)), at: offset)
        }
    }

    public func truncate(_ descriptor: Int32, to length: Int64) throws(SystemError) {
        try run(SystemCallDescription(.truncate, descriptor: descriptor, count: length)) { () throws(SystemError) in
            try base.truncate(descriptor, to: length)
        }
    }

    public func allocate(_ descriptor: Int32, offset: Int64, length: Int64) throws(SystemError) {
        try run(SystemCallDescription(.allocate, descriptor: descriptor, offset: offset, count: length)) {
            () throws(SystemError) in
            try base.allocate(descriptor, offset: offset, length: length)
        }
    }

    public func synchronize(_ descriptor: Int32, dataOnly: Bool) throws(SystemError) {
        try run(SystemCallDescription(dataOnly ? .synchronizeData : .synchronize, descriptor: descriptor)) {
            () throws(SystemError) in
            try base.synchronize(descriptor, dataOnly: dataOnly)
        }
    }

    public func synchronizeFileSystem(_ descriptor: Int32) throws(SystemError) {
        try run(SystemCallDescription(.synchronizeFileSystem, descriptor: descriptor)) { () throws(SystemError) in
            try base.synchronizeFileSystem(descriptor)
        }
    }

    public func changeOwner(_ descriptor: Int32, owner: UInt32, group: UInt32) throws(SystemError) {
        try run(SystemCallDescription(.changeOwner, descriptor: descriptor)) { () throws(SystemError) in
            try base.changeOwner(descriptor, owner: owner, group: group)
        }
    }

    public func changePermissions(_ descriptor: Int32, to permissions: UInt32) throws(SystemError) {
        try run(SystemCallDescription(.changePermissions, descriptor: descriptor, permissions: permissions)) {
            () throws(SystemError) in
            try base.changePermissions(descriptor, to: permissions)
        }
    }

    public func setTimes(_ descriptor: Int32, access: FileTime, modification: FileTime) throws(SystemError) {
        try run(SystemCallDescription(.setTimes, descriptor: descriptor)) { () throws(SystemError) in
            try base.setTimes(descriptor, access: access, modification: modification)
        }
    }

    public func lock(
        _ descriptor: Int32, _ lock: RangeLock, start: Int64, count: Int64, wait: Bool
    ) throws(SystemError) -> Bool {
        let call = SystemCallDescription(
            .lock, descriptor: descriptor, offset: start, count: count, lock: lock, waits: wait)
        return try run(call) { (_) throws(SystemError) in
            try base.lock(descriptor, lock, start: start, count: count, wait: wait)
        }
    }

    public func isLocked(_ descriptor: Int32, start: Int64, count: Int64) throws(SystemError) -> Bool {
        let call = SystemCallDescription(.isLocked, descriptor: descriptor, offset: start, count: count)
        return try run(call) { (_) throws(SystemError) in
            try base.isLocked(descriptor, start: start, count: count)
        }
    }

    public func takeReadLease(_ descriptor: Int32) throws(SystemError) {
        try run(SystemCallDescription(.takeReadLease, descriptor: descriptor)) { () throws(SystemError) in
            try base.takeReadLease(descriptor)
        }
    }

    public func leaseState(_ descriptor: Int32) throws(SystemError) -> LeaseState {
        try run(SystemCallDescription(.leaseState, descriptor: descriptor)) { (_) throws(SystemError) in
            try base.leaseState(descriptor)
        }
    }

    public func dropLease(_ descriptor: Int32) throws(SystemError) {
        try run(SystemCallDescription(.dropLease, descriptor: descriptor)) { () throws(SystemError) in
            try base.dropLease(descriptor)
        }
    }

    public func random(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) {
        try run(SystemCallDescription(.random, count: Int64(buffer.count))) { () throws(SystemError) in
            try base.random(into: buffer)
        }
    }
}
