// The names are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import CCandado
import FileProtection
import Glibc
import LinuxSystem
import ProtectionModel

@c @implementation
public func candado_record_parse(
    _ bytes: UnsafeRawPointer?, _ size: Int, _ record: UnsafeMutablePointer<candado_record>?
) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(RecordFunctions.parse(bytes, size, record)))
}

@c @implementation
public func candado_record_encode(
    _ record: UnsafePointer<candado_record>?, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
    Int(candado_library_result(RecordFunctions.encode(record, buffer, size)))
}

@c @implementation
public func candado_record_describe(
    _ record: UnsafePointer<candado_record>?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int
) -> Int {
    Int(candado_library_result(RecordFunctions.describe(record, buffer, size)))
}

@c @implementation
public func candado_record_of_path(
    _ path: UnsafePointer<CChar>?, _ flags: UInt32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
    Int(candado_library_result(RecordFunctions.record(path, flags, buffer, size)))
}

@c @implementation
public func candado_record_of_descriptor(
    _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
    Int(candado_library_result(RecordFunctions.record(descriptor, buffer, size)))
}

@c @implementation
public func candado_set_record_of_path(
    _ path: UnsafePointer<CChar>?, _ flags: UInt32, _ bytes: UnsafeRawPointer?, _ size: Int
) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(RecordFunctions.set(path, flags, bytes, size)))
}

@c @implementation
public func candado_set_record_of_descriptor(
    _ descriptor: Int32, _ flags: UInt32, _ bytes: UnsafeRawPointer?, _ size: Int
) -> Int32 {
    Int32(truncatingIfNeeded: candado_library_result(RecordFunctions.set(descriptor, flags, bytes, size)))
}

/// The inner halves. None of them needs a key, or anything that does not pass to a forked child.
private enum RecordFunctions {
    @inline(never)
    static func parse(
        _ bytes: UnsafeRawPointer?, _ size: Int, _ place: UnsafeMutablePointer<candado_record>?
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            let place = try Arguments.place(place)
            place.pointee = candado_record(try decoded(bytes, size))
            return 0
        }
    }

    private static func decoded(_ start: UnsafeRawPointer?, _ size: Int) throws(CallFailure) -> KeyRecord {
        let bytes = try Arguments.bytes(start, size)
        // No record is longer, and nobody's gigabytes are copied to find that out.
        let part = Array(bytes.prefix(KeyRecord.asymmetricSize + 1))
        return try protecting { () throws(ProtectionError) in try KeyRecord(decoding: part) }
    }

    private static func record(_ pointer: UnsafePointer<candado_record>?) throws(CallFailure) -> KeyRecord {
        guard let pointer else { throw .argument(EFAULT, "the record is NULL") }
        guard let record = KeyRecord(pointer.pointee) else {
            throw .argument(EINVAL, "the fields make no key record")
        }
        return record
    }

    @inline(never)
    static func encode(
        _ pointer: UnsafePointer<candado_record>?, _ buffer: UnsafeMutableRawPointer?, _ size: Int
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            try give(try record(pointer).encoded, into: try Arguments.buffer(buffer, size))
        }
    }

    private static func give(
        _ bytes: [UInt8], into buffer: UnsafeMutableRawBufferPointer
    ) throws(CallFailure) -> Int64 {
        guard bytes.count <= buffer.count else {
            throw .argument(ERANGE, "the buffer is too small: the key record has \(bytes.count) bytes")
        }
        buffer.copyBytes(from: bytes)
        return Int64(bytes.count)
    }

    @inline(never)
    static func describe(
        _ pointer: UnsafePointer<candado_record>?, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            let record = try record(pointer)
            _ = try Arguments.buffer(buffer, size)
            var text = Self.text(of: record)
            let length = text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) { candado_library_give($0.baseAddress, $0.count, buffer, size) }
            }
            return Int64(length)
        }
    }

    private static func text(of record: KeyRecord) -> String {
        let letter = Unicode.Scalar(record.protectionClass.letter)
        var text = "class \(letter) (\(record.protectionClass.name)), "
        text += record.isDirectory ? "for new files in a directory, " : "generation \(record.generation), "
        text += "keybag \(record.keybag)"
        if record.flags.contains(.keyWasWeaker) { text += ", the key was once wrapped for a weaker class" }
        return text
    }

    // MARK: Of files

    @inline(never)
    static func record(
        _ path: UnsafePointer<CChar>?, _ flags: UInt32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
    ) -> Int64 {
        outcome { () throws(CallFailure) in
            let buffer = try Arguments.buffer(buffer, size)
            return try give(try Inspection.ofPath(path, flags).record?.encoded ?? [], into: buffer)
        }
    }

    @inline(never)
    static func record(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int) -> Int64 {
        outcome { () throws(CallFailure) in
            let buffer = try Arguments.buffer(buffer, size)
            return try give(try Inspection.ofDescriptor(descriptor).record?.encoded ?? [], into: buffer)
        }
    }

    @inline(never)
    static func set(_ path: UnsafePointer<CChar>?, _ flags: UInt32, _ bytes: UnsafeRawPointer?, _ size: Int) -> Int64 {
        outcome { () throws(CallFailure) in
            let path = try Arguments.path(path)
            try Arguments.flags(flags, allowed: CANDADO_FOLLOW | CANDADO_REPLACE)
            let record = try decoded(bytes, size)
            let file = try Inspection.open(path, follow: flags & CANDADO_FOLLOW != 0)
            try store(record, on: file.number, replacing: flags & CANDADO_REPLACE != 0, path)
            return 0
        }
    }

    @inline(never)
    static func set(_ descriptor: Int32, _ flags: UInt32, _ bytes: UnsafeRawPointer?, _ size: Int) -> Int64 {
        outcome { () throws(CallFailure) in
            try Arguments.flags(flags, allowed: CANDADO_REPLACE)
            try store(try decoded(bytes, size), on: descriptor, replacing: flags & CANDADO_REPLACE != 0, nil)
            return 0
        }
    }

    private static func store(
        _ record: KeyRecord, on descriptor: Int32, replacing: Bool, _ path: FilePath?
    ) throws(CallFailure) {
        let system = LinuxSystemCalls.shared
        let kind = try calling(at: path) { () throws(SystemError) in try system.status(descriptor) }.kind
        try Inspection.require(kind, path)
        guard record.isDirectory == (kind == .directory) else {
            throw .argument(EINVAL, "a directory takes a directory's key record, and a file takes a file's")
        }
        let present = try calling(at: path) { () throws(SystemError) in
            try system.attribute(KeyRecord.attributeName, of: descriptor)
        }
        let bytes = record.encoded
        if present != bytes {
            guard present == nil || replacing else {
                throw CallFailure(
                    ProtectionError(
                        .alreadyExists, "another key record is there; CANDADO_REPLACE replaces it", path: path))
            }
            try calling(at: path) { () throws(SystemError) in
                try system.setAttribute(
                    KeyRecord.attributeName, of: descriptor, to: bytes, replacing: replacing ? .allowed : .forbidden)
            }
        }
        try calling(at: path) { () throws(SystemError) in try system.synchronize(descriptor, dataOnly: false) }
    }
}
