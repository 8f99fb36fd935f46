import FileProtection
@preconcurrency import Glibc
import NotesStore

// notes DIRECTORY list | show TITLE | add TITLE < text | remove TITLE | take-in | watch

@MainActor
func run(_ words: [String]) async throws -> Int32 {
    guard words.count >= 2, let directory = FilePath(words[0]) else {
        complain("usage: notes DIRECTORY list | show TITLE | add TITLE < text | remove TITLE | take-in | watch")
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
    case ("remove", 3):
        try await store.remove(words[2])
    case ("take-in", 2):
        for title in try await store.takeIn(try Importer(directory.appending("inbox"))) { print(title) }
    case ("watch", 2):
        await store.followLock { event in
            switch event {
            case .closed(let dropped): print("closed; \(dropped) notes dropped from memory")
            case .opened: print("open")
            }
        }.value
    default:
        return try await run([])
    }
    return 0
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
