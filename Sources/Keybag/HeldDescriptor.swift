import LinuxSystem

/// An open file shared by reference; closed, and its locks given up, when the last reference goes.
final class HeldDescriptor: Sendable {
    private let descriptor: Descriptor

    var number: Int32 { descriptor.number }

    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}
