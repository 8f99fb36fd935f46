import FileProtection
import Testing

@testable import NotesStore

/// The app through lock and unlock, with a real agent.
@Suite struct NotesStoreTests {
    private let agent: Agent
    private let store: NotesStore
    private let importer: Importer

    init() async throws {
        agent = try Agent()
        try await agent.unlock()
        store = try NotesStore(agent.root.appending("notes"), agent.protection)
        importer = try Importer(agent.root.appending("inbox"), agent.protection)
    }

    /// The code of what `body` throws; nil when it throws nothing.
    private func code<Value>(_ body: () async throws -> Value) async -> ProtectionError.Code? {
        do {
            _ = try await body()
            return nil
        } catch { return (error as? ProtectionError)?.code }
    }

    @Test func notesAreThereWhileUnlockedAndLockedIsNotAbsent() async throws {
        try await store.save("Milk\nBread", as: "shopping")
        #expect(try await store.note("shopping") == "Milk\nBread")
        #expect(try await store.firstLine(of: "shopping") == "Milk")
        #expect(try await store.note("nothing") == nil)
        let path = store.directory.appending("shopping.note")
        #expect(try agent.protection.protectionClass(of: path) == .complete)
        for preview in try agent.protection.previews(of: path) {
            #expect(try agent.protection.protectionClass(of: preview.path) == .complete)
        }
        try agent.protection.lock()
        #expect(await code { try await store.note("shopping") } == .locked(.complete))
        #expect(await code { try await store.firstLine(of: "shopping") } == .locked(.complete))
        #expect(await code { try await store.save("lost?", as: "shopping") } == .locked(.complete))
        #expect(await code { try await store.save("new", as: "new") } == .locked(.complete))
        #expect(try store.titles() == ["shopping"])
        // What is not there is not there in every state.
        #expect(try await store.note("nothing") == nil)
        try await agent.unlock()
        #expect(try await store.note("shopping") == "Milk\nBread")
        try agent.protection.lock()
        try await store.remove("shopping")
        #expect(try store.titles().isEmpty)
    }

    @Test func theStoreClosesWithTheLockAndSaysSo() async throws {
        let (told, teller) = AsyncStream.makeStream(of: NotesStore.Event.self)
        let following = store.followLock { teller.yield($0) }
        var events = told.makeAsyncIterator()
        for round in 1...3 {
            try await store.save("text", as: "a")
            try await store.save("text", as: "b")
            #expect(await store.heldNotes == 2)
            try agent.protection.lock()
            #expect(await events.next() == .closed(dropped: 2), "round \(round)")
            #expect(await store.heldNotes == 0)
            try await agent.unlock()
            #expect(await events.next() == .opened)
        }
        following.cancel()
        await following.value
    }

    /// The cache answers nothing after the lock, also when the event has not come yet.
    @Test func whatIsHeldIsNotShownAfterTheLock() async throws {
        try await store.save("text", as: "a")
        #expect(await store.heldNotes == 1)
        try agent.protection.lock()
        #expect(await store.heldNotes == 1)
        #expect(await code { try await store.note("a") } == .locked(.complete))
    }

    @Test func anImportGoesOnThroughTheLockAndNewOnesBeginAfterIt() async throws {
        let (pieces, sender) = AsyncStream.makeStream(of: [UInt8].self)
        let (begun, beginner) = AsyncStream.makeStream(of: Void.self)
        let importing = Task { [importer] in
            try await importer.importNote(
                "letter",
                from: pieces.map { piece in
                    beginner.yield()
                    return piece
                })
        }
        sender.yield(Array("begun unlocked, ".utf8))
        for await _ in begun { break }
        try agent.protection.lock()
        #expect(try importer.finished().isEmpty)
        sender.yield(Array("ended locked".utf8))
        sender.finish()
        try await importing.value
        let (others, otherSender) = AsyncStream.makeStream(of: [UInt8].self)
        otherSender.yield(Array("all of it locked".utf8))
        otherSender.finish()
        try await importer.importNote("parcel", from: others)
        #expect(try importer.finished() == ["letter", "parcel"])
        // Nobody reads them now, and nothing is lost in trying.
        #expect(await code { try await store.takeIn(importer) } == .locked(.completeUnlessOpen))
        #expect(try importer.finished() == ["letter", "parcel"])
        try await agent.unlock()
        #expect(try await store.takeIn(importer) == ["letter", "parcel"])
        #expect(try importer.finished().isEmpty)
        #expect(try await store.note("letter") == "begun unlocked, ended locked")
        #expect(try await store.note("parcel") == "all of it locked")
        for title in try store.titles() {
            let path = store.directory.appending(FilePath(title + ".note") ?? "x")
            #expect(try agent.protection.protectionClass(of: path) == .complete)
        }
    }

    private func importNote(_ title: String, _ text: String) async throws {
        let (pieces, sender) = AsyncStream.makeStream(of: [UInt8].self)
        sender.yield(Array(text.utf8))
        sender.finish()
        try await importer.importNote(title, from: pieces)
    }

    @Test func anImportNeverReplacesANoteOfItsTitle() async throws {
        let long = String(repeating: "a", count: 200)
        for title in ["letter", long] {
            let second = String(title.prefix(198)) + " 2"
            let third = String(title.prefix(198)) + " 3"
            try await store.save("written by the user", as: title)
            try await importNote(title, "imported")
            #expect(try await store.takeIn(importer) == [second])
            try await importNote(title, "another")
            #expect(try await store.takeIn(importer) == [third])
            #expect(try await store.note(title) == "written by the user")
            #expect(try await store.note(second) == "imported")
            #expect(try await store.note(third) == "another")
            #expect(try importer.finished().isEmpty)
            // As after a kill between the note and the end of the import: it is not taken in twice.
            try await importNote(title, "another")
            #expect(try await store.takeIn(importer) == [third])
            #expect(try store.titles().filter { $0.hasPrefix(title.prefix(198)) }.count == 3)
        }
    }

    /// Reads that the lock overtakes: what they bring is not held after the store has closed.
    @Test func whatARowOfReadsBringsIsNotHeldAfterTheLock() async throws {
        let titles = (0..<8).map { "note \($0)" }
        for title in titles { try await store.save(title, as: title) }
        let (told, teller) = AsyncStream.makeStream(of: NotesStore.Event.self)
        let following = store.followLock { teller.yield($0) }
        var events = told.makeAsyncIterator()
        for round in 1...20 {
            let reading = titles.map { title in Task { [store] in try? await store.note(title) } }
            try agent.protection.lock()
            guard case .closed = await events.next() else {
                Issue.record("round \(round): not closed")
                break
            }
            for task in reading { _ = await task.value }
            #expect(await store.heldNotes == 0, "round \(round)")
            try await agent.unlock()
            #expect(await events.next() == .opened)
        }
        following.cancel()
        await following.value
    }

    @Test func whatWasReadInAPeriodThatIsOverIsNotHeld() {
        var held = HeldNotes()
        let before = held.period
        held.hold("text", as: "a", from: before)
        #expect(held["a"] == "text")
        #expect(held.close() == 1)
        held.hold("text", as: "a", from: before)
        held.hold("other", as: "b", from: before)
        #expect(held["a"] == nil && held.count == 0)
        held.hold("text", as: "a", from: held.period)
        #expect(held.count == 1)
    }

    @Test func anImportThatFailsLeavesNothing() async throws {
        struct Broken: Error {}
        let pieces = AsyncThrowingStream<[UInt8], any Error> { continuation in
            continuation.yield([1, 2, 3])
            continuation.finish(throwing: Broken())
        }
        await #expect(throws: Broken.self) { try await importer.importNote("letter", from: pieces) }
        #expect(try importer.finished().isEmpty)
    }

    @Test(arguments: ["", ".hidden", "a/b", "../a", String(repeating: "a", count: 201)])
    func aTitleThatIsAPathIsRefused(title: String) async throws {
        #expect(await code { try await store.save("x", as: title) } == .invalidArgument)
        #expect(await code { try await store.note(title) } == .invalidArgument)
        #expect(try store.titles().isEmpty)
    }
}
