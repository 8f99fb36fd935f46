import AgentClient
import AgentProtocol
import Glibc
import KeychainModel
import LinuxSystem
import TestSupport
import Testing

/// A program that was moved is told of what it left behind, and one that executes another takes nothing along.
@Suite struct KeychainMovedTests {
    private static let nothing = "itemNotFound: no item matches the query"

    /// Makes a program with an item, and moves it to another directory.
    private static func moved(_ place: KeychainPlace, _ name: FilePath) throws -> (old: FilePath, new: FilePath) {
        let old = try place.copy(name)
        let program = try place.asking(old)
        #expect(try program.ask("add a") == "done")
        program.kill()
        try place.directory.makeDirectory("new")
        let new = place.directory.appending("new").appending(name)
        #expect(rename(old.description, new.description) == 0)
        return (old, new)
    }

    @Test func aMovedProgramFindsAHintOnceAndItsItemsAfterIt() throws {
        let place = try KeychainPlace()
        let (old, new) = try Self.moved(place, "app")
        for _ in 0..<3 {
            let program = try place.asking(new)
            for _ in 0..<2 { #expect(try program.ask("find a") == Self.nothing) }
            // The hint comes behind the answer, and before the next.
            #expect(try program.ask("who") == "executable \(new)")
        }
        let command = "candado keychain adopt '\(old)' '\(new)'"
        #expect(place.log.split(separator: "\n").count { $0.contains(" warning ") && $0.contains(command) } == 1)
        #expect(
            try AgentClient.status(at: place.home.socket).movedPrograms == [
                AgentStatus.MovedProgram(old: old.description, new: new.description)
            ])
        #expect(try place.candado("doctor").outputText.contains(command))

        #expect(try place.candado("keychain", "adopt", old.description, new.description).status == 0)
        #expect(try place.asking(new).ask("find a") == "done")
        #expect(try AgentClient.status(at: place.home.socket).movedPrograms == [])
        #expect(try !place.candado("doctor").outputText.contains("adopt"))
    }

    @Test func aMovedScriptFindsAHint() throws {
        let place = try KeychainPlace()
        let python = try place.copy("python3")
        // The client stands for an interpreter, and its first word for the script.
        try place.directory.write([], to: "ask")
        let old = place.directory.appending("ask").description
        let first = try RunningProgram(python, [old, place.home.socket.description])
        #expect(try first.ask("add a") == "done")
        first.kill()
        try place.directory.makeDirectory("new")
        let new = place.directory.appending("new/ask").description
        #expect(rename(old, new) == 0)
        let second = try RunningProgram(python, [new, place.home.socket.description])
        #expect(try second.ask("find a") == Self.nothing)
        #expect(try second.ask("who") == "script script:\(new)")
        #expect(
            try AgentClient.status(at: place.home.socket).movedPrograms == [
                AgentStatus.MovedProgram(old: "script:\(old)", new: "script:\(new)")
            ])
    }

    /// Another name, a program that is there, one that has what it asks for, and one that is known by entitlements: none was
    /// moved.
    @Test func whatWasNotMovedIsNotHintedAt() throws {
        let place = try KeychainPlace()
        let (old, new) = try Self.moved(place, "app")
        #expect(try place.asking(try place.copy("other")).ask("find a") == Self.nothing)
        let named = try place.copy("named")
        try place.entitlements.set(named.description, identifier: "org.example.app", groups: [])
        #expect(try place.asking(named).ask("find a") == Self.nothing)
        // The old place has a program again.
        #expect(try place.copy("app") == old)
        let program = try place.asking(new)
        #expect(try program.ask("find a") == Self.nothing)
        #expect(try program.ask("add a") == "done")
        #expect(unlink(old.description) == 0)
        let another = try place.asking(new)
        #expect(try another.ask("find a") == "done")
        #expect(try another.ask("who") == "executable \(new)")
        #expect(try AgentClient.status(at: place.home.socket).movedPrograms == [])
        #expect(!place.log.contains("adopt"))
    }

    /// The connection is close-on-exec; where it survives all the same, it is of no use.
    @Test func aProgramThatExecutesAnotherLosesTheConnection() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app")
        let other = try place.copy("other")
        let program = try place.asking(path)
        #expect(try program.ask("who") == "executable \(path)")
        #expect(try program.ask("exec \(other)") == "ended")
        #expect(place.log.contains("the process is another program now"))
        // The same program once more is the same.
        let again = try place.asking(path)
        #expect(try again.ask("who") == "executable \(path)")
        #expect(try again.ask("exec \(path)") == "answered")
    }

    /// A client that is killed leaves no connection behind.
    @Test func theConnectionEndsWithItsProcess() throws {
        let place = try KeychainPlace()
        let program = try place.asking(try place.copy("app"))
        #expect(try program.ask("who").hasPrefix("executable"))
        program.kill()
        for _ in 0..<6000 where !place.log.contains("keychain connection 1 has ended") { poll(nil, 0, 10) }
        #expect(place.log.contains("keychain connection 1 has ended"))
    }
}
