// A second process for the tests of locks: opens the keybag, does what its arguments say, a step for each byte on its
// standard input, and answers each finished step with a byte on standard output.
//
// candado-test-worker HOME PASSCODE COMMAND PATH [ARGUMENT...]

import Glibc
import Keybag
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import Synchronization
import TestSupport

struct Usage: Error {}

/// Waits until the next step is asked for. False at the end of the input.
func isAsked() -> Bool {
    var byte: UInt8 = 0
    return read(0, &byte, 1) == 1
}

func answer() throws {
    var byte = UInt8(ascii: ".")
    guard write(1, &byte, 1) == 1 else { throw Usage() }
}

extension ProtectedFile {
    func write(_ bytes: [UInt8], at offset: Int) throws {
        try bytes.withUnsafeBytes { try write($0, at: UInt64(offset)) }
    }

    func perform(_ change: FileChange) throws {
        switch change {
        case .write(let offset, _, _): try write(change.bytes, at: offset)
        case .append: try change.bytes.withUnsafeBytes { _ = try append($0) }
        case .truncate(let length): try truncate(to: UInt64(length))
        case .synchronize: try synchronize()
        }
    }
}

func run(_ arguments: [String]) throws {
    guard arguments.count >= 5, let home = FilePath(arguments[1]), let path = FilePath(arguments[4]) else {
        throw Usage()
    }
    let keybag = try Keybag.open(KeybagHome(directory: home))
    let passcode = Array(arguments[2].utf8)
    try keybag.unlock(passcode: try SecretBytes(count: passcode.count) { $0.copyBytes(from: passcode) })
    let files = ProtectedFileSystem(keys: keybag)
    let numbers = arguments[5...].compactMap { Int($0) }
    switch arguments[3] {
    case "stamp":
        // Writes whole chunks, each full of a number that only rises; goes on by itself until the input ends or it is
        // killed.
        guard numbers.count == 2 else { throw Usage() }
        let (chunks, rounds) = (numbers[0], numbers[1])
        let handle = try files.open(path, for: .updating)
        try answer()
        for round in 1...rounds {
            let first = (round * 7) % chunks
            let count = min(1 + round % 3, chunks - first)
            var bytes: [UInt8] = []
            for _ in 0..<(count * 512) { withUnsafeBytes(of: UInt64(round)) { bytes += $0 } }
            try handle.write(bytes, at: first * 4096)
            if round % 50 == 0 { try handle.synchronize() }
        }
        try handle.close()
    case "append":
        let handle = try files.open(path, for: .updating)
        var number: UInt64 = 0
        while isAsked() {
            number += 1
            var bytes: [UInt8] = []
            for _ in 0..<numbers[0] { withUnsafeBytes(of: number) { bytes += $0 } }
            try bytes.withUnsafeBytes { _ = try handle.append($0) }
            try answer()
        }
        try handle.close()
    case "range":
        // Writes a rising number into its own bytes of a chunk that it shares.
        guard numbers.count == 2 else { throw Usage() }
        let handle = try files.open(path, for: .updating)
        try answer()
        for round in 1...numbers[1] {
            try handle.write([UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 100), at: numbers[0])
            if round % 37 == 0 { try handle.synchronize() }
        }
        try handle.close()
    case "script":
        // Changes by a seed, each when asked; the file's present length is what they begin from.
        var random = DeterministicRandom(seed: UInt64(numbers[0]))
        let handle = try files.open(path, for: .updating)
        try answer()
        while isAsked() {
            try handle.perform(.next(&random, length: Int(try handle.length)))
            try answer()
        }
        try handle.close()
    case "resize":
        // Field reports CC-01 and CC-05.
        var random = DeterministicRandom(seed: UInt64(numbers[0]))
        let handle = try files.open(path, for: .updating)
        try answer()
        for _ in 0..<numbers[1] { try handle.truncate(to: UInt64(Int.random(in: 0..<100_000, using: &random))) }
        try handle.close()
    case "set-class":
        guard let wanted = ProtectionClass(name: arguments[5]) else { throw Usage() }
        _ = try files.setProtectionClass(of: path, to: wanted)
    case "replace":
        // Field report FS-05: whole files under one name.
        for round in 1...numbers[0] {
            let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 5000)
            let given = Mutex(false)
            _ = try files.write(to: path) { buffer in
                let isOver = given.withLock { given in
                    defer { given = true }
                    return given
                }
                if isOver { return 0 }
                buffer.copyBytes(from: bytes)
                return bytes.count
            }
            if round == 1 { try answer() }
        }
    default: throw Usage()
    }
}

do {
    try run(CommandLine.arguments)
} catch {
    let text = Array("candado-test-worker: \(error)\n".utf8)
    _ = text.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
    exit(1)
}
