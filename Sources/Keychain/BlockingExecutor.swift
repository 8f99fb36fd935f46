import FileProtection

/// Runs the jobs of one actor one after another on a thread that may wait, which is started when there is work and ends when
/// there is none.
final class BlockingExecutor: SerialExecutor {
    private let threads = BlockingThreads(limit: 1)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.start { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
}
