import FileProtection
@preconcurrency import Glibc
import NotesStore

// notes DIRECTORY list | show TITLE | add TITLE < text | remove TITLE | import TITLE < text | take-in | watch

let usage =
    "usage: notes DIRECTORY list | show TITLE | add TITLE < text | remove TITLE | import TITLE < text | take-in | watch"

@MainActor
func run(_ words: [String]) async throws -> Int32 {
    guard words.count >= 2, let directory = FilePath(words[0]) else {
        complain(usage)
        return 64
    }
    let store = try NotesStore(directory)
    switch (words[1], words.count) {
    case ("list", 2):
        for title in try store.titles() { print(title) }
    case ("show", 3):
        guard let text = try await store.note(words[2]) else {
            complain("there is no such note")
            return 1
        }
        print(text)
    case ("add", 3):
        var text = ""
        while let line = readLine(strippingNewline: false) { text += line }
        try await store.save(text, as: words[2])
    case ("import", 3):
        // In every lock state, line by line as it comes.
        let lines = AsyncStream { readLine(strippingNewline: false).map { Array($0.utf8) } }
        try await importer(of: store).importNote(words[2], from: lines)
    case ("remove", 3):
        try await store.remove(words[2])
    case ("take-in", 2):
        for title in try await store.takeIn(try importer(of: store)) { print(title) }
    case ("watch", 2):
        try await watch(store)
    default:
        return try await run([])
    }
    return 0
}

@MainActor
func importer(of store: NotesStore) throws -> Importer { try Importer(store.directory.appending("inbox")) }

/// Follows the lock, and takes in what was imported: what there is now, and after each unlock what came meanwhile.
@MainActor
func watch(_ store: NotesStore) async throws {
    let (events, teller) = AsyncStream.makeStream(of: NotesStore.Event.self)
    let following = store.followLock { teller.yield($0) }
    defer { following.cancel() }
    let importer = try importer(of: store)
    try await takeIn(importer, store)
    for await event in events {
        switch event {
        case .closed(let dropped): tell("closed; \(dropped) notes dropped from memory")
        case .opened:
            tell("open")
            try await takeIn(importer, store)
        }
    }
}

/// Locked, there is nothing to do: the next unlock brings us here again.
@MainActor
func takeIn(_ importer: Importer, _ store: NotesStore) async throws {
    do {
        for title in try await store.takeIn(importer) { tell("taken in: \(title)") }
    } catch let error as ProtectionError {
        guard case .locked = error.code else { throw error }
    }
}

/// At once, also into a pipe.
func tell(_ text: String) {
    print(text)
    fflush(stdout)
}

func complain(_ text: String) {
    fputs("notes: \(text)\n", stderr)
}

do {
    exit(try await run(Array(CommandLine.arguments.dropFirst())))
} catch {
    // The sentence says what is wrong, and for a missing agent what to do.
    complain("\(error)")
    exit(1)
}
