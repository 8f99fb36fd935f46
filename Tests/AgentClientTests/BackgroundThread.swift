import Glibc

/// A thread that runs `body` once and can be waited for.
final class BackgroundThread: @unchecked Sendable {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private var thread = pthread_t()
    private var isJoined = false

    init(_ run: @escaping @Sendable () -> Void) {
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(Body(run)).toOpaque())
        precondition(result == 0)
    }

    /// Waits until it has ended.
    func join() {
        guard !isJoined else { return }
        isJoined = true
        pthread_join(thread, nil)
    }
}

/// A semaphore of the system's.
final class Signal: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }
    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func send() { sem_post(semaphore) }
    func wait() { while sem_wait(semaphore) == -1, errno == EINTR {} }
}
