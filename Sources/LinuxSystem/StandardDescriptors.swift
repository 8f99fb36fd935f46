import Glibc

/// The descriptors 0, 1 and 2 of a program.
public enum StandardDescriptors {
    /// Opens /dev/null where one of them is closed: else the next file opened would take its number, and messages would
    /// be written into it. What is written to a closed 1 fails as it does without this, so that no result is taken for
    /// delivered. For the first line of a program.
    public static func reserve() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 {
            let opened = open("/dev/null", descriptor == 1 ? O_RDONLY : O_RDWR)
            if opened >= 0, opened != descriptor { close(opened) }
        }
    }
}
