import FileProtection
import TestSupport
import Testing

/// openradar 16761393: settings read as empty before the first unlock, and the empty set saved over the real one.
@Suite struct BeforeFirstUnlockTests {
    private static let settings = Array("volume = 7\n".utf8)

    /// Opening, replacing, and what a program tries that takes the file for lost: each says locked.
    @Test(arguments: [false, true])
    func beforeTheFirstUnlockAFileOfClassCIsNeitherReadNorReplacedNorEmptied(agentWasKilled: Bool) throws {
        let place = try AgentPlace(keepsClient: agentWasKilled)
        let path = place.directory.appending("settings")
        let other = place.directory.appending("other")
        let classC = ProtectionClass.completeUntilFirstUserAuthentication
        try place.protection.write(Self.settings, to: path, class: classC)
        try place.protection.write([0], to: other, class: ProtectionClass.none)
        let before = try Snapshot(path)
        try place.enter(.beforeFirstUnlock)
        let protection = place.protection
        #expect(protection.lockState == .beforeFirstUnlock && !protection.canRead(classC))

        #expect(code { try protection.open(path, for: .reading) } == .locked(classC))
        #expect(code { try protection.contents(of: path) } == .locked(classC))
        #expect(code { try protection.open(path, for: .updating) } == .locked(classC))
        #expect(code { try protection.open(path, for: .creating(nil)) } == .locked(classC))
        #expect(code { try protection.open(path, for: .creating(classC)) } == .locked(classC))
        // A name that is taken is said to be so, also by those who could create a file of that class.
        for protectionClass in [ProtectionClass.completeUnlessOpen, ProtectionClass.none] {
            #expect(code { try protection.open(path, for: .creating(protectionClass)) } == .alreadyExists)
        }
        // Whole files are written beside and renamed over the old one, whatever class the new one has.
        for protectionClass in [nil] + ProtectionClass.allCases.map({ Optional($0) }) {
            let found = code { try protection.write([], to: path, class: protectionClass) }
            guard case .locked = found else {
                Issue.record("written as \(protectionClass?.name ?? "the old class"): \(String(describing: found))")
                continue
            }
        }
        for protectionClass in ProtectionClass.allCases where protectionClass != classC {
            #expect(code { try protection.setProtectionClass(protectionClass, of: path) } == .locked(classC))
        }
        // Files of other classes are not concerned.
        #expect(try protection.contents(of: other) == [0])

        #expect(try Snapshot(path) == before)
        #expect(try protection.protectionClass(of: path) == classC)
        try place.unlock()
        #expect(try protection.contents(of: path) == Self.settings)
        try protection.write([1], to: path)
        #expect(try protection.contents(of: path) == [1])
    }

    /// The same by commands: exit status 10, and no byte on stdout that a script could take for an empty file.
    @Test func beforeTheFirstUnlockCommandsSayThatAFileOfClassCIsLocked() throws {
        let place = try AgentPlace(usesCommands: true)
        let candado = CandadoCommand(place.agent)
        let path = place.directory.appending("settings")
        let name = path.description
        try place.protection.write(Self.settings, to: path)
        let before = try Snapshot(path)
        try place.enter(.beforeFirstUnlock)
        let commands = [
            ["read", name], ["write", name], ["write", "--class", "none", name], ["unprotect", name],
            ["set-class", "none", name], ["set-class", "--rekey", "none", name],
        ]
        for command in commands {
            let step = CommandOperator.Step(words: candado.words(command))
            let result = try candado.run(step.words)
            #expect(result.status == 10 && result.outputText == step.refusal, "\(command): \(result.status)")
        }
        #expect(try Snapshot(path) == before)
        try place.unlock()
        let result = try candado.run(candado.words(["read", name]))
        #expect(result.status == 0 && result.output == Self.settings)
    }
}

/// Which file it is, and all of its bytes.
private struct Snapshot: Equatable {
    let identity: FileIdentity
    let bytes: [UInt8]
    let record: [UInt8]?

    init(_ path: FilePath) throws {
        let system = LinuxSystemCalls.shared
        let opened = try system.openFile(path, [.read])
        identity = FileIdentity(try system.status(opened.number))
        record = try system.attribute(KeyRecord.attributeName, of: opened.number)
        bytes = try SafeFile.read(path, in: currentDirectory, maximumSize: 1 << 30, ownerOnly: false, system)
    }
}
