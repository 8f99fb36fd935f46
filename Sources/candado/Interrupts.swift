import Glibc
import Synchronization

/// Signals that ask the process to end.
///
/// The first one only sets a flag: long work polls it, leaves every file whole, and stops. A second SIGINT ends the
/// process at once, with the terminal as it was; every file is whole then too. SIGPIPE is ignored: a closed stdout shows as an error of writing.
enum Interrupts {
    /// Begins to catch them. Called once, before any work.
    static func install() {
        signal(SIGPIPE, SIG_IGN)
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var old = sigaction()
            // nohup and background jobs ask for these to be ignored, and mean it.
            if sigaction(number, nil, &old) == 0, old.__sigaction_handler.sa_handler == nil || number == SIGTERM {
                var action = sigaction()
                action.__sigaction_handler.sa_handler = { interrupted(by: $0) }
                sigaction(number, &action, nil)
            }
        }
    }

    /// The signal that asked for the end, or nil.
    static var received: Int32? {
        let number = flag.load(ordering: .relaxed)
        return number == 0 ? nil : number
    }

    /// True when work should stop.
    static var isRequested: Bool { received != nil }

    /// Waits until there is input on a descriptor, or an interrupt, or `isOver` says so. Returns false for the latter two.
    ///
    /// Polls every 200 ms, since a signal that comes between the look at the flag and the wait wakes nobody.
    static func waitForInput(_ descriptor: Int32, until isOver: () -> Bool = { false }) -> Bool {
        while !isRequested, !isOver() {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // An error here will show again, with its reason, when the descriptor is read.
            let count = poll(&entry, 1, 200)
            if count > 0 || (count < 0 && errno != EINTR) { return !isRequested }
        }
        return false
    }

    /// Waits so long, or until an interrupt. Returns false for the interrupt.
    static func wait(milliseconds: Int32) -> Bool {
        poll(nil, 0, milliseconds)
        return !isRequested
    }

    /// What to do to the terminal when a second SIGINT ends the process in the middle of a prompt.
    static func restoreOnExit(_ descriptor: Int32, _ mode: termios) {
        savedMode.pointee = mode
        terminal.store(descriptor, ordering: .sequentiallyConsistent)
    }

    /// The prompt is over.
    static func forgetTerminal() { terminal.store(-1, ordering: .sequentiallyConsistent) }

    fileprivate static let flag = Atomic<Int32>(0)
    fileprivate static let terminal = Atomic<Int32>(-1)
    nonisolated(unsafe) fileprivate static let savedMode = {
        let pointer = UnsafeMutablePointer<termios>.allocate(capacity: 1)
        pointer.initialize(to: termios())
        return pointer
    }()
}

/// Runs in the signal handler: only atomics and calls that are safe there.
private func interrupted(by number: Int32) {
    let before = Interrupts.flag.exchange(number, ordering: .sequentiallyConsistent)
    guard before == SIGINT, number == SIGINT else { return }
    let descriptor = Interrupts.terminal.load(ordering: .sequentiallyConsistent)
    if descriptor >= 0 { tcsetattr(descriptor, TCSANOW, Interrupts.savedMode) }
    _exit(ExitStatus.ofSignal(number))
}
