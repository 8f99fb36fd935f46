import LinuxSystem

/// Descriptors that came with a message. They are closed with this object, whatever was done with them.
final class ReceivedDescriptors: Sendable {
    let numbers: [Int32]
    private let system: any SystemCalls

    init(_ numbers: [Int32], _ system: any SystemCalls) {
        self.numbers = numbers
        self.system = system
    }

    deinit { for number in numbers { try? system.close(number) } }
}
