import Glibc

/// Whether a write would have to wait.
public enum DescriptorRoom {
    /// Whether `PIPE_BUF` bytes can be written to a pipe, socket or terminal at this moment without waiting for somebody
    /// who reads. True for files, and where nobody reads any more: the write says so. Thread-safe.
    public static func hasRoom(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        return repeatedWhileInterrupted { Int(poll(&entry, 1, 0)) } > 0
    }
}
