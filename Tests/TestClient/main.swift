// A client of the agent in a process of its own, for tests.
//
// candado-test-client hold SOCKET FILE...          opens the files; for each line on standard input reads all of them and
//                                                  answers with a word each: "read" or the error
// candado-test-client show SOCKET FILE...          the same, but answers with a line for each file: its name and its content
// candado-test-client loop SOCKET INDEX A B C D    reads in a tight loop, by the rules of LoopPage on descriptor 3
// candado-test-client who SOCKET                   says who it is taken for, and again for each line on standard input
// candado-test-client ask SOCKET                   asks the keychain what each line on standard input says: see `ask`
// candado-test-client inherited SOCKET             asks who it is over a socket that it has from another program
// candado-test-client mixed SOCKET INDEX COUNT      calls the keychain COUNT times in a mix, then says what became of them
// candado-test-client spin SOCKET A                reads 4 KiB in a tight loop, and counts the reads on descriptor 3

import AgentClient
import Glibc
import KeychainModel
import LinuxSystem
import ProtectedFiles
import ProtectionModel
import SecretMemory
import TestSupport

struct Usage: Error {}

/// Something that may never happen has happened: the test fails with these words.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

/// Nil at the end of the input.
func hear() -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    while read(0, &byte, 1) == 1 {
        if byte == 0x0A { return String(decoding: bytes, as: UTF8.self) }
        bytes.append(byte)
    }
    return nil
}

/// Reads what there is, or as much as the buffer takes. Nil when it is locked.
func content(
    _ handle: ProtectedFile, _ buffer: UnsafeMutableRawBufferPointer, at offset: UInt64 = 0
) throws(ProtectionError) -> Int? {
    do {
        return try handle.read(into: buffer, at: offset)
    } catch {
        if case .locked = error.code { return nil }
        throw error
    }
}

func word(_ handle: ProtectedFile, _ buffer: UnsafeMutableRawBufferPointer) -> String {
    do {
        return try content(handle, buffer) == nil ? "locked" : "read"
    } catch {
        return "\(error.code)"
    }
}

/// The same files again and again, in the phases that the test sets.
func loop(_ files: ProtectedFileSystem, _ page: LoopPage, index: Int, _ paths: [FilePath]) throws {
    let handles = try paths.map { try files.open($0, for: .reading) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    say("ready")
    var round = 0
    while true {
        let before = page.phase
        if before == LoopPage.end { return }
        round += 1
        var wasRead = try content(handles[0], buffer) != nil
        if round % 8 == 0 {
            // A fresh open is a trial of its own.
            do throws(ProtectionError) {
                let fresh = try files.open(paths[0], for: .reading)
                wasRead = try content(fresh, buffer) != nil || wasRead
            } catch {
                guard case .locked = error.code else { throw error }
                if LoopPage.isUnlocked(before), page.phase == before { wasRead = false }
            }
        }
        for (handle, name) in zip(handles.dropFirst(), ["B", "C", "D"]) {
            guard let count = try content(handle, buffer), count > 0 else {
                throw Violation(description: "the handle of class \(name) is locked in phase \(before)")
            }
        }
        guard page.phase == before else { continue }
        if LoopPage.isLocked(before), wasRead {
            throw Violation(description: "class A was read after the lock, in phase \(before)")
        }
        if LoopPage.isUnlocked(before), !wasRead {
            throw Violation(description: "class A was not read while unlocked, in phase \(before)")
        }
        page.setSeen(before, by: index)
    }
}

/// The source of the identification and the groups, or the error.
func who(_ keychain: AgentKeychain) -> String {
    do throws(KeychainError) {
        guard let caller = try keychain.perform(.whoAmI).answer.caller else { return "nobody" }
        return ([caller.source.rawValue] + caller.accessGroups).joined(separator: " ")
    } catch {
        return "error \(error.code.rawValue)"
    }
}

/// What became of a request.
func outcome(_ keychain: AgentKeychain, _ request: KeychainRequest) -> String {
    do throws(KeychainError) {
        try keychain.perform(request) { _ in }
        return "done"
    } catch {
        return "\(error.code.rawValue): \(error.message)"
    }
}

/// `add ACCOUNT`, `find ACCOUNT`, `who`; `new` for another connection from now on, `hide` the memory, `fork` a child that
/// keeps everything open, `exec PROGRAM` that inherits everything.
func ask(_ socket: FilePath) throws {
    var keychain = AgentKeychain(at: socket)
    while let line = hear() {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        var item: ItemDictionary = ["class": .text("genp"), "svce": .text("asked"), "acct": .text(words.last ?? "")]
        switch words.first {
        case "add":
            item["pdmn"] = .text("dk")
            say(outcome(keychain, .add(item)))
        case "find":
            item["r_Data"] = .boolean(true)
            say(outcome(keychain, .find(item)))
        case "who": say(who(keychain))
        case "new":
            keychain = AgentKeychain(at: socket)
            say("done")
        case "hide": say(SecretMemory.hardenProcess() ? "done" : "failed")
        case "fork":
            let child = fork()
            if child == 0 { while true { pause() } }
            say("\(child)")
        case "exec":
            for descriptor in Int32(3)..<64 { _ = fcntl(descriptor, F_SETFD, 0) }
            var arguments: [UnsafeMutablePointer<CChar>?] = [
                strdup("other"), strdup("inherited"), strdup(socket.description), nil,
            ]
            execv(words.last ?? "", &arguments)
            say("failed")
        default: throw Usage()
        }
    }
}

/// What the agent says to the request of a program that another program left its connection to.
func inherited() -> String {
    for descriptor in Int32(3)..<64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { continue }
        let whoAmI: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0, 0]
        guard send(descriptor, whoAmI, whoAmI.count, Int32(MSG_NOSIGNAL)) == whoAmI.count else { return "ended" }
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, 0) == 1 ? "answered" : "ended"
    }
    return "no socket"
}

/// Waits until an agent answers, a minute at most.
func awaitAgent(_ keychain: AgentKeychain) {
    for _ in 0..<6000 {
        guard who(keychain).hasPrefix("error") else { return }
        poll(nil, 0, 10)
    }
}

/// Adds, finds, changes, lists and deletes. Says each code that came with how often it came, and what has to be there.
func mixed(_ keychain: AgentKeychain, index: Int, count: Int) throws {
    var codes: [String: Int] = [:]
    var random = DeterministicRandom(seed: UInt64(index))
    /// Accounts and what their secrets have to be now; nil inside where a lost answer leaves two possibilities.
    var expected: [String: Set<String?>] = [:]
    for round in 0..<count {
        if round > 0, round % ((count + 3) / 4) == 0 { say("quarter") }
        let account = "\(index)-\(random.next() % 50)"
        let before = expected[account] ?? [nil]
        let text = "\(round)"
        var item: ItemDictionary = [
            "class": .text("genp"), "svce": .text("mixed"), "acct": .text(account), "pdmn": .text("dk"),
        ]
        let secret = try text.utf8.withContiguousStorageIfAvailable {
            try ItemSecret(copying: UnsafeRawBufferPointer($0))
        }
        guard let secret else { throw Usage() }
        var after = before
        let request: KeychainRequest
        switch random.next() % 4 {
        case 0:
            item["v_Data"] = .secret(secret)
            request = .add(item)
            after = Set(before.map { $0 ?? text })
        case 1:
            item["pdmn"] = nil
            request = .update(item, to: ["v_Data": .secret(secret)])
            after = Set(before.map { $0 == nil ? nil : text })
        case 2:
            item["pdmn"] = nil
            request = .delete(item)
            after = [nil]
        default:
            item["pdmn"] = nil
            item["r_Data"] = .boolean(true)
            request = .find(item)
        }
        do throws(KeychainError) {
            let found = try keychain.perform(request)
            codes["done", default: 0] += 1
            expected[account] = after
            if case .find = request {
                let text = found.results.first?.secret?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
                guard before.contains(text), text != nil else {
                    throw KeychainError(.undecodable, "\(account) is \(text ?? "nothing"), not \(before)")
                }
                expected[account] = [text]
            }
        } catch {
            codes[error.code.rawValue, default: 0] += 1
            switch error.code {
            case .duplicateItem where !before.contains { $0 != nil }:
                throw Violation(description: "a ghost of \(account)")
            case .itemNotFound where !before.contains(nil): throw Violation(description: "\(account) is lost")
            case .duplicateItem: expected[account] = before.filter { $0 != nil }
            case .itemNotFound: expected[account] = [nil]
            case .agentNotReachable:
                expected[account] = before.union(after)
                awaitAgent(keychain)
            case .busy: break
            default: throw Violation(description: "\(error.code): \(error)")
            }
        }
    }
    say(codes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " "))
}

func run(_ arguments: [String]) throws {
    guard arguments.count >= 3, let socket = FilePath(arguments[2]) else { throw Usage() }
    // Memory of the other kind cannot be scanned by the test.
    SecretMemory.configure(allowSecretMemoryDescriptor: false)
    // A test may have given its name as the path of a script.
    switch arguments[1].split(separator: "/").last.map(String.init) ?? "" {
    case "who":
        let keychain = AgentKeychain(at: socket)
        say(who(keychain))
        while hear() != nil { say(who(keychain)) }
        return
    case "ask": return try ask(socket)
    case "inherited": return say(inherited())
    case "mixed":
        guard arguments.count == 5, let index = Int(arguments[3]), let count = Int(arguments[4]) else { throw Usage() }
        try mixed(AgentKeychain(at: socket), index: index, count: count)
        return
    default: break
    }
    let client = try AgentClient.connect(to: socket)
    let files = ProtectedFileSystem(keys: client)
    let paths = arguments.dropFirst(3).compactMap { FilePath($0) }
    switch arguments[1] {
    case "hold":
        let handles = try paths.map { try files.open($0, for: .reading) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        say("ready")
        while hear() != nil { say(handles.map { word($0, buffer) }.joined(separator: " ")) }
    case "show":
        let handles = try paths.map { try files.open($0, for: .reading) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        while hear() != nil {
            for (path, handle) in zip(paths, handles) {
                let count = try content(handle, buffer)
                let text = count.map { String(decoding: buffer[..<$0], as: UTF8.self) } ?? "locked"
                say("\(path): \(text.split(separator: "\n").joined(separator: " "))")
            }
        }
    case "loop":
        guard paths.count == 5, let index = Int(arguments[3]) else { throw Usage() }
        try loop(files, try LoopPage(descriptor: 3), index: index, Array(paths.dropFirst()))
    case "spin":
        guard let path = paths.first else { throw Usage() }
        let page = try LoopPage(descriptor: 3)
        let handle = try files.open(path, for: .reading)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        say("ready")
        var count: UInt32 = 0
        while page.phase != LoopPage.end {
            guard try content(handle, buffer, at: UInt64(count % 14) * 4096) != nil else { continue }
            count &+= 1
            page.setSeen(count, by: 0)
        }
    default: throw Usage()
    }
}

do {
    try run(CommandLine.arguments)
} catch {
    say("failed: \(error)")
    exit(1)
}
