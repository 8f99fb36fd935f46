import CSystemd

/// A message from the bus, read from front to back. Valid while the handler that got it runs, unless it is kept.
struct LogindMessage {
    let pointer: OpaquePointer

    /// What a message held is none of ours to trust: each reading function gives nil for another type than asked for.
    enum Kind: UInt8 {
        case string = 0x73  // s
        case objectPath = 0x6F  // o
        case boolean = 0x62  // b
        case unsigned = 0x75  // u
        case descriptor = 0x68  // h
        case array = 0x61  // a
        case structure = 0x72  // r
        case entry = 0x65  // e
        case variant = 0x76  // v
    }

    /// The unique name of the connection that sent it, as the bus says: nobody can choose it.
    var sender: String { text(sd_bus_message_get_sender(pointer)) }
    var path: String { text(sd_bus_message_get_path(pointer)) }
    var interface: String { text(sd_bus_message_get_interface(pointer)) }
    var member: String { text(sd_bus_message_get_member(pointer)) }

    /// The name of the error that this answer is, or nil when it is none.
    var errorName: String? {
        guard sd_bus_message_is_method_error(pointer, nil) > 0 else { return nil }
        guard let error = sd_bus_message_get_error(pointer) else { return "an error without a name" }
        return text(error.pointee.name)
    }

    /// The error that this answer is, for people.
    var errorText: String {
        guard let error = sd_bus_message_get_error(pointer) else { return "no answer" }
        let sentence = text(error.pointee.message)
        return sentence.isEmpty ? text(error.pointee.name) : sentence
    }

    func readString(_ kind: Kind = .string) -> String? {
        var value: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(pointer, code(kind), &value) > 0, let value else { return nil }
        return String(cString: value)
    }

    func readBoolean() -> Bool? {
        var value: Int32 = 0
        return sd_bus_message_read_basic(pointer, code(.boolean), &value) > 0 ? value != 0 : nil
    }

    func readUnsigned() -> UInt32? {
        var value: UInt32 = 0
        return sd_bus_message_read_basic(pointer, code(.unsigned), &value) > 0 ? value : nil
    }

    /// A variant that holds a string.
    func readVariantString() -> String? {
        guard enter(.variant, of: "s"), let value = readString(), leave() else { return nil }
        return value
    }

    /// A variant that holds a user as logind writes it: the number, and the path of its object.
    func readUser() -> UInt32? {
        guard enter(.variant, of: "(uo)"), enter(.structure, of: "uo"), let user = readUnsigned(), skip("o"), leave(),
            leave()
        else { return nil }
        return user
    }

    /// The number of a descriptor that lives as long as the message.
    func readDescriptor() -> Int32? {
        var value: Int32 = -1
        return sd_bus_message_read_basic(pointer, code(.descriptor), &value) > 0 ? value : nil
    }

    /// Enters the next container; false when there is none, or one of another type.
    func enter(_ kind: Kind, of contents: String) -> Bool {
        sd_bus_message_enter_container(pointer, code(kind), contents) > 0
    }

    /// Leaves it; false when not all of it was read.
    func leave() -> Bool { sd_bus_message_exit_container(pointer) >= 0 }

    func skip(_ types: String) -> Bool { sd_bus_message_skip(pointer, types) >= 0 }

    private func code(_ kind: Kind) -> CChar { CChar(bitPattern: kind.rawValue) }

    private func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
}

/// A message that is kept beyond its handler, with the descriptors that came in it: they are closed with this value.
final class KeptLogindMessage {
    private let pointer: OpaquePointer

    init(_ message: LogindMessage) { pointer = sd_bus_message_ref(message.pointer) }

    deinit { sd_bus_message_unref(pointer) }
}
