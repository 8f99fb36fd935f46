import AgentClient
import Glibc
import KeychainModel
import KeychainStore
import LinuxSystem
import TestSupport
import Testing

/// Who a program is taken for: a real agent, and copies of a real client at paths of the test's choice.
@Suite struct KeychainCallerTests {
    @Test func aProgramIsItsPathHoweverItIsCalled() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app").description
        #expect(try place.who(path) == "executable \(path)")
        #expect(try place.who("./app") == "executable \(path)")
        let link = place.directory.appending("other-name").description
        #expect(symlink(path, link) == 0)
        #expect(try place.who(link) == "executable \(path)")
        // A name for people decides nothing.
        #expect(
            try place.who("bash", "-c", "exec -a /usr/bin/other \(path) who \(place.home.socket)")
                == "executable \(path)")
        // An upgrade is another file at the same path.
        #expect(unlink(path) == 0)
        _ = try place.copy("app")
        #expect(try place.who(path) == "executable \(path)")
        // Somewhere else it is another program.
        let moved = place.directory.appending("moved").description
        #expect(rename(path, moved) == 0)
        #expect(try place.who(moved) == "executable \(moved)")
    }

    @Test func entitlementsCountForTheVeryFileAndAtOnce() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app").description
        let other = try place.copy("other").description
        let link = place.directory.appending("link").description
        #expect(symlink(path, link) == 0)
        // Named through a link, it is the same file.
        try place.entitlements.set(link, identifier: "org.example.app", groups: ["shared"])
        #expect(try place.who(path) == "entitlements shared org.example.app")
        #expect(try place.who(other) == "executable \(other)")
        try place.entitlements.set(link, identifier: "org.example.app", groups: [])
        #expect(try place.who(path) == "entitlements org.example.app")
        #expect(chmod(place.entitlements.path.description, 0o666) == 0)
        #expect(try place.who(path) == "executable \(path)")
        #expect(chmod(place.entitlements.path.description, 0o600) == 0)
        #expect(try place.who(path) == "entitlements org.example.app")
        try place.entitlements.remove(link)
        #expect(try place.who(path) == "executable \(path)")
    }

    /// A connection that is open hears of a change with its next request, and outlives a replacement of its executable.
    @Test func anOpenConnectionFollowsTheEntitlements() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app")
        let program = try RunningProgram(path, ["who", place.home.socket.description])
        #expect(try program.line() == "executable \(path)")
        try place.entitlements.set(path.description, identifier: "org.example.app", groups: ["g"])
        #expect(try program.ask("again") == "entitlements g org.example.app")
        #expect(unlink(path.description) == 0)
        _ = try place.copy("app")
        #expect(try program.ask("again") == "entitlements g org.example.app")
        try place.entitlements.remove(path.description)
        #expect(try program.ask("again") == "executable \(path)")
    }

    /// An entry may name a program through a link: an upgrade under it changes nothing.
    @Test func aReplacedProgramIsStillTheOneOfItsEntryHoweverThatIsWritten() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app")
        let link = place.directory.appending("link").description
        #expect(symlink(place.directory.path.description, link) == 0)
        try place.entitlements.set(link + "/app", identifier: "org.example.app", groups: [])
        let program = try RunningProgram(path, ["ask", place.home.socket.description])
        #expect(try program.ask("who") == "entitlements org.example.app")
        #expect(unlink(path.description) == 0)
        for isReplaced in [false, true] {
            if isReplaced { _ = try place.copy("app") }
            // A connection of its own.
            #expect(try program.ask("new") == "done")
            #expect(try program.ask("who") == "entitlements org.example.app", "replaced: \(isReplaced)")
        }
    }

    /// The command line's group is not to be had by a name.
    @Test func nobodyElseIsTheCommandLine() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app").description
        let list =
            "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>CFBundleIdentifier</key>"
            + "<string>candado</string></dict></plist>"
        try place.directory.write(Array(list.utf8), to: "Info.plist", permissions: 0o644)
        #expect(try place.who(path) == "executable \(path)")
        for (identifier, groups) in [("candado", []), ("org.example.app", ["candado"])] as [(String, [String])] {
            #expect(throws: KeychainError.self) {
                try place.entitlements.set(path, identifier: identifier, groups: groups)
            }
        }
    }

    @Test func aPropertyListBesideTheExecutableNamesIt() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app").description
        let list =
            "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>CFBundleIdentifier</key>"
            + "<string>org.example.bundle</string></dict></plist>"
        try place.directory.write(Array(list.utf8), to: "Info.plist", permissions: 0o644)
        #expect(try place.who(path) == "info-plist org.example.bundle")
        try place.directory.write(Array(list.utf8), to: "Info.plist", permissions: 0o666)
        #expect(try place.who(path) == "executable \(path)")
        try place.directory.write(Array(list.utf8), to: "Info.plist", permissions: 0o644)
        try place.entitlements.set(path, identifier: "org.example.app", groups: [])
        #expect(try place.who(path) == "entitlements org.example.app")
    }

    /// The client stands for an interpreter here: its name decides, and its words are what it says.
    @Test func scriptsAreToldApart() throws {
        let place = try KeychainPlace()
        let python = try place.copy("python3.11").description
        let plain = try place.copy("python-config").description
        try place.directory.write([], to: "who")
        let script = place.directory.appending("who").description
        func who(_ program: String, _ word: String) throws -> String {
            try Command.run("env", [program, word, place.home.socket.description], directory: place.directory.path)
                .outputText.split(separator: "\n").last.map(String.init) ?? ""
        }
        #expect(try who(python, script) == "script script:\(script)")
        #expect(try who(plain, script) == "executable \(plain)")
        // What a relative path means depends on where the program is by now, so it never counts.
        #expect(try who(python, "who") == "executable \(python)")
        #expect(unlink(script) == 0)
        #expect(try who(python, script) == "executable \(python)")
    }

    private static let canUnshare = (try? Command.run("unshare", ["-m", "true"]).status) == 0

    @Test(.enabled(if: canUnshare, "this system makes no mount namespaces for this user"))
    func aProcessOfAnotherMountNamespaceIsNeverTheHostsProgram() throws {
        let place = try KeychainPlace()
        let path = try place.copy("app").description
        try place.entitlements.set(path, identifier: "org.example.app", groups: [])
        let found = try place.who("unshare", "-m", path)
        #expect(found.hasPrefix("executable container:"), "\(found)")
        #expect(found.hasSuffix(":\(path)"))
        #expect(try place.who(path) == "entitlements org.example.app")
    }

    @Test func theCommandLineBesideTheAgentIsTheAdministrator() throws {
        let place = try KeychainPlace()
        let programs = (ProcessFacts.ownExecutable ?? ".").parent
        for name: FilePath in ["candado-agent", "candado-test-client"] {
            let target: FilePath = name == "candado-agent" ? name : "candado"
            let result = try Command.run(
                "cp", [programs.appending(name).description, place.directory.appending(target).description])
            #expect(result.status == 0)
        }
        place.home.killAgent()
        let agent = try RunningProgram(
            place.directory.appending("candado-agent"),
            [
                "--home", place.home.home.directory.description, "--log", place.directory.appending("log").description,
                "--ready-fd", "1",
            ])
        try agent.expect("ready \(agent.process)")
        let candado = place.directory.appending("candado").description
        #expect(try place.who(candado) == "administrator candado")
        let copy = try place.copy("copy").description
        #expect(try place.who(copy) == "executable \(copy)")
    }
}
