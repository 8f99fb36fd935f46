import CCandado
import Cryptography
import FileProtection
import Glibc

@testable import CandadoC

/// The functions of the C library, called in any order with any arguments by somebody who also tampers with the files.
///
/// An input is a stream of calls: a byte that says which, and bytes from which its arguments are made. Nothing traps, nothing
/// but -1 is a failure, and each failure has an errno and a sentence. The keys are this process's own: no agent is needed.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let scene = Scene.only else { return -1 }
    var calls = Calls(Input(UnsafeBufferPointer(start: start, count: count)), scene)
    calls.run()
    return 0
}

/// A home, and the directory of the files.
private final class Scene: Sendable {
    static let passcode = Array("correct horse".utf8)
    static let names = ["a", "b", "c", "plain", "directory", "link", "gone", "."]
    static let only: Scene? = try? Scene()

    let protection: FileProtection
    /// With a slash at the end.
    let files: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let place = "\(parent)/candado-fuzz-\(getpid())"
        mkdir(place, 0o700)
        files = place + "/files/"
        guard let directory = FilePath(place + "/home"), mkdir(files, 0o700) == 0 else {
            throw ProtectionError(.invalidArgument, "no directory")
        }
        let home = KeybagHome(directory: directory)
        _ = try Keybag.create(
            in: home, passcode: try Self.secret(), recoveryKey: nil, cost: .explicit(Scrypt.Cost(logN: 1, r: 1, p: 1)))
        protection = try FileProtection.open(home)
        try protection.unlock(passcode: try Self.secret())
        mkdir(files + "directory", 0o700)
        symlink("a", files + "link")
    }

    static func secret() throws -> SecretBytes {
        try SecretBytes(count: passcode.count) { $0.copyBytes(from: passcode) }
    }

    /// The files as every input finds them.
    func reset() {
        Library.home.use(protection)
        try? protection.unlock(passcode: try Self.secret())
        for (index, name) in ["a", "b", "c"].enumerated() {
            unlink(files + name)
            let content = [UInt8](repeating: 0x5A, count: index * 5000)
            precondition(candado_write_file(files + name, content, content.count, Int32(index + 1), 0) == 0)
        }
        unlink(files + "gone")
        unlink(files + "plain")
        close(open(files + "plain", O_CREAT | O_WRONLY, 0o600))
    }
}

/// Bytes that become arguments. After the end all are zero.
private struct Input {
    private var rest: Slice<UnsafeBufferPointer<UInt8>>

    init(_ bytes: UnsafeBufferPointer<UInt8>) { rest = bytes[...] }

    var isAtEnd: Bool { rest.isEmpty }
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func number() -> Int64 {
        var value: UInt64 = 0
        for _ in 0..<8 { value = value << 8 | UInt64(byte()) }
        return Int64(bitPattern: value)
    }

    mutating func bytes(_ most: Int) -> [UInt8] {
        let part = Array(rest.prefix(min(Int(byte()), most)))
        rest = rest.dropFirst(part.count)
        return part
    }

    /// Near, or so far that no file gets there.
    mutating func offset() -> Int64 {
        switch byte() % 8 {
        case 0: number() | 1 << 62
        case 1: -1 - (number() & .max)
        default: Int64(byte()) << 8 | Int64(byte())
        }
    }

    /// A class, or nearly one.
    mutating func classNumber() -> Int32 { byte() % 8 == 0 ? Int32(truncatingIfNeeded: number()) : Int32(byte() % 6) }
    mutating func flags() -> UInt32 { byte() % 8 == 0 ? UInt32(truncatingIfNeeded: number()) : UInt32(byte() % 16) }

    /// A name in the directory, and nothing outside of it.
    mutating func path() -> [CChar] {
        let choice = Int(byte())
        let files = Scene.only?.files ?? ""
        if choice < 224 { return Array((files + Scene.names[choice % Scene.names.count]).utf8CString) }
        let name = bytes(200).map { [0x2F, 0x2E].contains($0) ? UInt8(ascii: "_") : $0 }
        return (Array(files.utf8) + name + [0]).map { CChar(bitPattern: $0) }
    }
}

private struct Calls {
    /// Kinds of calls: scripts/fuzz begins with one of each.
    private static let kinds: UInt8 = 44

    private var input: Input
    private let scene: Scene
    private var files: [candado_file] = []
    private var events: [candado_events] = []
    private var buffer = [UInt8](repeating: 0, count: 70_000)

    init(_ input: Input, _ scene: Scene) {
        self.input = input
        self.scene = scene
    }

    mutating func run() {
        scene.reset()
        var left = 64
        while !input.isAtEnd, left > 0 {
            left -= 1
            call(input.byte() % Self.kinds)
        }
        for file in files { _ = candado_close(file) }
        for subscription in events { _ = candado_events_close(subscription) }
    }

    /// A failure is -1 and has an errno and a sentence.
    private func check(_ result: some BinaryInteger) {
        let number = errno
        precondition(result >= -1)
        if result == -1 {
            precondition((1...4095).contains(number) && candado_error(nil, 0) > 0 && candado_error_kind() > 0)
            precondition(candado_error_text(number) != nil)
        }
    }

    /// Texts are given as `snprintf` does: with a NUL, and nothing behind it is touched.
    private func checkText(_ size: Int, _ give: (UnsafeMutablePointer<CChar>?, Int) -> Int) {
        let length = give(nil, 0)
        precondition((0..<1024).contains(length))
        var text = [CChar](repeating: 0x55, count: size + 8)
        precondition(give(&text, size) == length)
        let copied = size == 0 ? 0 : min(length, size - 1)
        precondition(!text[..<copied].contains(0))
        precondition(size == 0 || text[copied] == 0)
        precondition(text[(size == 0 ? 0 : copied + 1)...].allSatisfy { $0 == 0x55 })
        var whole = [CChar](repeating: 0x55, count: length + 1)
        precondition(give(&whole, whole.count) == length && whole.starts(with: text[..<copied]))
    }

    private mutating func file() -> candado_file {
        input.byte() % 8 == 0 ? input.number() : files.isEmpty ? 0 : files[Int(input.byte()) % files.count]
    }

    private mutating func subscription() -> candado_events {
        input.byte() % 8 == 0 ? input.number() : events.isEmpty ? 0 : events[Int(input.byte()) % events.count]
    }

    /// A size that is true, or one that no buffer has.
    private mutating func size() -> Int {
        input.byte() % 8 == 0 ? -1 - Int(input.number() & .max) : Int(input.byte()) << 8 | Int(input.byte())
    }

    private mutating func record() -> candado_record {
        var record = candado_record()
        let bytes = input.bytes(MemoryLayout<candado_record>.size)
        withUnsafeMutableBytes(of: &record) { $0.copyBytes(from: bytes) }
        return record
    }

    private mutating func call(_ number: UInt8) {
        switch number {
        case 0: check(candado_class_named(input.path()))
        case 1: precondition(candado_class_name(Int32(truncatingIfNeeded: input.number())) == nil || errno >= 0)
        case 2: check(candado_class_of_path(input.path(), input.flags()))
        case 3: check(candado_class_of_descriptor(Int32(truncatingIfNeeded: input.number())))
        case 4: parse()
        case 5:
            var record = record()
            let size = size()
            check(candado_record_encode(&record, &buffer, size))
            describe(&record)
        case 6:
            let path = input.path()
            let flags = input.flags()
            check(candado_record_of_path(path, flags, &buffer, size()))
        case 7:
            onOpenFile { calls, descriptor in calls.check(candado_record_of_descriptor(descriptor, &calls.buffer, 124))
            }
        case 8:
            let path = input.path()
            let flags = input.flags()
            let bytes = input.bytes(130)
            check(candado_set_record_of_path(path, flags, bytes, bytes.count))
        case 9:
            onOpenFile { calls, descriptor in
                let bytes = calls.input.bytes(130)
                calls.check(candado_set_record_of_descriptor(descriptor, calls.input.flags(), bytes, bytes.count))
            }
        case 10: check(candado_use_home(input.path()))
        case 11: Library.home.use(scene.protection)
        case 12: check(candado_connect_agent())
        case 13: check(candado_lock_state())
        case 14: check(candado_can_read(input.classNumber()))
        case 15 where events.count < 4:
            let handle = candado_events_open()
            check(handle)
            if handle > 0 { events.append(handle) }
        case 16: check(candado_events_descriptor(subscription()))
        case 17, 18:
            var event = candado_event()
            check(candado_events_next(subscription(), &event))
        case 19: check(candado_events_close(subscription()))
        case 20...23 where files.count < 6: open()
        case 24: check(candado_close(file()))
        case 25, 26: read()
        case 27, 28:
            let file = file()
            let size = size()
            check(candado_pwrite(file, buffer, size, input.offset()))
        case 29:
            let file = file()
            check(candado_append(file, buffer, size()))
        case 30: check(candado_length(file()))
        case 31:
            let file = file()
            check(candado_truncate(file, input.offset()))
        case 32: check(candado_fsync(file()))
        case 33: check(candado_class_of_file(file()))
        case 34: readWhole()
        case 35:
            let path = input.path()
            let protectionClass = input.classNumber()
            let size = size()
            check(candado_write_file(path, buffer, size, protectionClass, input.flags()))
        case 36:
            let path = input.path()
            check(candado_set_class(path, input.classNumber(), input.flags()))
        case 37:
            input.byte() % 2 == 0
                ? try? scene.protection.lock() : try? scene.protection.unlock(passcode: Scene.secret())
        case 38: tamper()
        case 39: precondition(strcmp(candado_version(), CANDADO_VERSION) == 0)
        case 40:
            let text = candado_error_text(Int32(truncatingIfNeeded: input.number()))
            precondition(text.map { strlen($0) > 0 } ?? false)
        case 41: checkText(Int(input.byte()) << 3) { Int(candado_error($0, $1)) }
        case 42:
            checkText(Int(input.byte())) { Int(candado_error($0, $1)) }
            precondition((0...14).contains(candado_error_kind()))
        default: null(input.byte() % 16)
        }
    }

    private mutating func parse() {
        var record = candado_record()
        let bytes = input.bytes(200)
        let result = candado_record_parse(bytes, bytes.count, &record)
        check(result)
        guard result == 0 else { return }
        precondition(candado_record_encode(&record, &buffer, 124) == bytes.count && buffer.starts(with: bytes))
        describe(&record)
    }

    private mutating func describe(_ record: inout candado_record) {
        let size = size()
        let length = candado_record_describe(&record, &buffer, min(size, buffer.count))
        check(length)
        precondition(length < 256)
        guard length >= 0 else { return }
        checkText(min(size, 300)) { candado_record_describe(&record, $0, $1) }
    }

    private mutating func open() {
        let path = input.path()
        let access = input.byte() % 8 == 0 ? Int32(truncatingIfNeeded: input.number()) : Int32(input.byte() % 4)
        let file = candado_open(path, access, access == 3 ? input.classNumber() : Int32(input.byte() / 200))
        check(file)
        if file > 0 { files.append(file) }
    }

    private mutating func read() {
        let file = file()
        let size = size()
        let count = candado_pread(file, &buffer, size, input.offset())
        check(count)
        precondition(count <= max(size, 0))
    }

    private mutating func readWhole() {
        let path = input.path()
        var bytes: UnsafeMutableRawPointer?
        var size = 77
        let result = candado_read_file(path, &bytes, &size)
        check(result)
        precondition((result == 0) == (bytes != nil) && (result == 0 || size == 0))
        candado_free(bytes)
        check(candado_read_file_into(path, &buffer, self.size()))
    }

    private mutating func onOpenFile(_ body: (inout Calls, Int32) -> Void) {
        let descriptor = Glibc.open(input.path(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        body(&self, descriptor)
        if descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Somebody writes into a container, or cuts it.
    private mutating func tamper() {
        let descriptor = Glibc.open(input.path(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        let place = Int(input.byte()) << 6 | Int(input.byte() & 63)
        if input.byte() % 4 == 0 {
            ftruncate(descriptor, place)
        } else {
            let bytes = input.bytes(64)
            pwrite(descriptor, bytes, bytes.count, place)
        }
        Glibc.close(descriptor)
    }

    /// Every pointer once NULL.
    private mutating func null(_ number: UInt8) {
        let file = file()
        switch number {
        case 0: check(candado_class_named(nil))
        case 1: check(candado_class_of_path(nil, 0))
        case 2: check(candado_record_parse(nil, size(), nil))
        case 3: check(candado_record_encode(nil, nil, size()))
        case 4: check(candado_record_describe(nil, nil, size()))
        case 5: check(candado_record_of_path(nil, 0, nil, size()))
        case 6: check(candado_set_record_of_path(nil, 0, nil, size()))
        case 7: check(candado_events_next(subscription(), nil))
        case 8: check(candado_open(nil, 1, 0))
        case 9: check(candado_pread(file, nil, size(), input.offset()))
        case 10: check(candado_pwrite(file, nil, size(), input.offset()))
        case 11: check(candado_append(file, nil, size()))
        case 12: check(candado_read_file(nil, nil, nil))
        case 13: check(candado_read_file_into(nil, nil, size()))
        case 14: check(candado_write_file(nil, nil, size(), 0, 0))
        default: check(candado_set_class(nil, 1, 0))
        }
    }
}
