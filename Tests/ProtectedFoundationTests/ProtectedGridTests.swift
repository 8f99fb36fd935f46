import FileProtection
import TestSupport
import Testing

@testable import ProtectedFoundation

/// Every call on protected files: each class in each lock state, with a look at the bytes on the disk.
@Suite struct ProtectedGridTests {
    static let states: [LockState] = [.beforeFirstUnlock, .unlocked, .locked]

    /// The state matrix for whole files.
    static func canRead(_ protectionClass: ProtectionClass, _ state: LockState) -> Bool {
        switch protectionClass {
        case .complete, .completeUnlessOpen: state == .unlocked
        case .completeUntilFirstUserAuthentication: state != .beforeFirstUnlock
        case .none: true
        }
    }

    static func canCreate(_ protectionClass: ProtectionClass, _ state: LockState) -> Bool {
        protectionClass == .completeUnlessOpen || canRead(protectionClass, state)
    }

    /// Contents that each reading call can make something of, and what Foundation makes of them.
    static let contents: [PlainScene] = PlainScene.all.filter {
        [
            "a text", "an empty file", "UTF-16, low byte first", "UTF-32, low byte first", "UTF-8 with a mark",
            "a property list of an array", "a property list of a dictionary", "a character set", "an archive",
            "bytes that are no UTF-8", "a large file",
        ].contains($0.description)
    }

    @Test(arguments: ProtectionClass.allCases)
    func readingGivesTheContentOrSaysThatItIsLocked(_ protectionClass: ProtectionClass) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        for state in Self.states {
            let owner = try fixture.owner(state)
            for scene in Self.contents {
                let plain = try TemporaryDirectory(.memory)
                let plainURL = URL(fileURLWithPath: plain.path.description)
                try scene.make(plainURL)
                let bytes = try plain.read("it")
                try fixture.protection.write(bytes, to: fixture.path("it"), class: protectionClass)
                let before = try fixture.stored("it")
                for (call, foundations) in zip(WholeFileCall.ofOurs, WholeFileCall.ofFoundation)
                where call.effect == .reads && (call.demands == nil || call.demands == scene.description) {
                    let name = Comment(rawValue: "\(call), \(scene), \(state)")
                    let canRead =
                        Self.canRead(protectionClass, state) && !(call.refusesComplete && protectionClass == .complete)
                    let result = Result { try fixture.run(owner) { try call.run(fixture.url("it")) } }
                    if canRead {
                        let expected = Result { try foundations.run(plainURL.appendingPathComponent("it")) }
                        switch (result, expected) {
                        case (.success(let given), .success(let wanted)): #expect(given == wanted, name)
                        case (.failure(let given), .failure(let wanted)):
                            #expect(Failure(given) == Failure(wanted), name)
                            #expect(type(of: given) == type(of: wanted), name)
                        default: Issue.record("\(name): \(result), not \(expected)")
                        }
                    } else {
                        switch result {
                        case .success(let given): #expect(given == nil, name)
                        case .failure(let error): #expect(Failure(error) == .lockedReading, name)
                        }
                    }
                    #expect(try fixture.stored("it") == before, name)
                }
            }
        }
    }

    @Test(arguments: ProtectionClass.allCases)
    func writingOverAProtectedFileKeepsItsClassOrTheFile(_ protectionClass: ProtectionClass) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        for state in Self.states {
            let owner = try fixture.owner(state)
            for call in WholeFileCall.ofOurs where call.effect != .reads {
                let name = Comment(rawValue: "\(call), \(state)")
                try fixture.protection.write(Array("old".utf8), to: fixture.path("it"), class: protectionClass)
                let before = try fixture.stored("it")
                let result = Result { try fixture.run(owner) { try call.run(fixture.url("it")) } }
                let canWrite =
                    Self.canRead(protectionClass, state) && call.effect == .writes && !call.refusesProtected
                if canWrite {
                    #expect((try? result.get()) == "written", name)
                    #expect(try fixture.inspection("it").protectionClass == protectionClass, name)
                    try Self.expectContent(of: call, in: fixture, name)
                } else {
                    #expect(try fixture.stored("it") == before, name)
                    switch (result, call.effect) {
                    case (.success(let given), _): #expect(given == nil, name)
                    case (.failure(let error), .creates): #expect(Failure(error) == .cocoa(516, beneath: EEXIST), name)
                    case (.failure(let error), .cannotWrite): #expect(Failure(error) == .cocoa(517), name)
                    case (.failure(let error), _): #expect(Failure(error) == .lockedWriting, name)
                    }
                }
                #expect(try fixture.names == ["it"], name)
            }
        }
    }

    @Test(arguments: ProtectionClass.allCases)
    func newFilesGetTheClassOfTheirDirectoryOrAreNotMade(_ protectionClass: ProtectionClass) throws {
        for state in Self.states {
            let fixture = try DataFixture()
            try fixture.unlock()
            try fixture.protection.setProtectionClass(protectionClass, of: fixture.path("."))
            let owner = try fixture.owner(state)
            for call in WholeFileCall.ofOurs where call.effect == .writes || call.effect == .creates {
                let name = Comment(rawValue: "\(call), \(state)")
                let result = Result { try fixture.run(owner) { try call.run(fixture.url("it")) } }
                if Self.canCreate(protectionClass, state), !call.refusesProtected {
                    #expect((try? result.get()) == "written", name)
                    #expect(try fixture.inspection("it").protectionClass == protectionClass, name)
                    try Self.expectContent(of: call, in: fixture, name)
                    try FileManager.default.removeItem(at: fixture.url("it"))
                } else {
                    switch result {
                    case .success(let given): #expect(given == nil, name)
                    case .failure(let error): #expect(Failure(error) == .lockedWriting, name)
                    }
                }
                #expect(try fixture.names == [], name)
            }
        }
    }

    @Test(arguments: ProtectionClass.allCases)
    func optionsNameTheClassOfAFile(_ protectionClass: ProtectionClass) throws {
        let fixture = try DataFixture()
        try fixture.unlock()
        let option: Data.WritingOptions =
            switch protectionClass {
            case .complete: .completeFileProtection
            case .completeUnlessOpen: .completeFileProtectionUnlessOpen
            case .completeUntilFirstUserAuthentication: .completeFileProtectionUntilFirstUserAuthentication
            case .none: .noFileProtection
            }
        for state in Self.states {
            let owner = try fixture.owner(state)
            for more: Data.WritingOptions in [[], .atomic, .withoutOverwriting] {
                let name = Comment(rawValue: "\(state), \(more)")
                let problem = fixture.run(owner) {
                    failure { try WholeFileCall.sample.write(to: fixture.url("it"), options: [option, more]) }
                }
                if Self.canCreate(protectionClass, state) {
                    #expect(problem == nil, name)
                    #expect(try fixture.inspection("it").protectionClass == protectionClass, name)
                    #expect(
                        try fixture.protection.contents(of: fixture.path("it")) == Array(WholeFileCall.sample), name)
                    #expect(!Self.holds(try fixture.stored("it"), WholeFileCall.sample), name)
                    try FileManager.default.removeItem(at: fixture.url("it"))
                } else {
                    #expect(problem == .lockedWriting, name)
                }
                #expect(try fixture.names == [], name)
            }
        }
    }

    // MARK: -

    /// The content is what Foundation's call writes to a plain file, and is not to be seen on the disk.
    static func expectContent(of call: WholeFileCall, in fixture: DataFixture, _ name: Comment) throws {
        let plain = try TemporaryDirectory(.memory)
        let foundations = WholeFileCall.ofFoundation.first { $0.description == call.description }
        _ = try foundations?.run(URL(fileURLWithPath: plain.path.description).appendingPathComponent("it"))
        let expected = try plain.read("it")
        let content = try fixture.protection.contents(of: fixture.path("it"))
        #expect(call.varies ? content.count == expected.count : content == expected, name)
        #expect(!holds(try fixture.stored("it"), Data(expected)), name)
    }

    static func holds(_ bytes: [UInt8], _ part: Data) -> Bool {
        part.count >= 8 && Data(bytes).range(of: part.prefix(16)) != nil
    }
}
