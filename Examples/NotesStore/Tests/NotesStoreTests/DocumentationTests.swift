import FileProtection
import Testing

@testable import OwnKeybag
@testable import TutorialStep1
@testable import TutorialStep2
@testable import TutorialStep3
@testable import TutorialStep4
@testable import TutorialStep5

/// The code of the documentation, called as an app would: from the main actor, one test after the other, because the keybag
/// of a process is one.
@Suite(.serialized) @MainActor struct DocumentationTests {
    private let agent: Agent

    init() async throws {
        agent = try Agent()
        try await agent.unlock()
    }

    @Test func theStepsOfTheTutorialDoWhatTheySay() async throws {
        try FileProtection.configure(.given(agent.protection))
        let directory = agent.root.appending("diary")
        let monday = directory.appending("monday")
        _ = try TutorialStep1.Diary(in: directory)
        // Without a directory: the diary makes it.
        try await TutorialStep2.Diary(in: directory).write("rain", for: "monday")
        #expect(try agent.protection.protectionClass(of: directory) == .complete)
        #expect(try agent.protection.protectionClass(of: monday) == .complete)
        let diary = try TutorialStep3.Diary(in: directory)
        guard case .text("rain") = try await diary.page(of: "monday") else {
            throw Agent.Failure(description: "no page")
        }
        guard case .empty = try await diary.page(of: "tuesday") else { throw Agent.Failure(description: "a page") }
        let export = DiaryExport(protection: agent.protection)
        let copy = agent.root.appending("copy")
        var statements: [ExportStatement] = []
        try await export.export(monday, to: copy) { statement in
            statements.append(statement)
            return false
        }
        #expect(throws: ProtectionError.self) { try agent.protection.protectionClass(of: copy) }
        try await export.export(monday, to: copy) { statement in
            statements.append(statement)
            return true
        }
        #expect(statements.count == 2 && statements[0].leavesProtection)
        #expect(try agent.protection.protectionClass(of: copy) == nil)
        try await export.edit(monday) { path in
            #expect(try agent.protection.protectionClass(of: path) == .complete)
            let text = try await agent.protection.contents(of: path)
            try await agent.protection.write(text + Array(", then sun".utf8), to: path)
        }
        guard case .text("rain, then sun") = try await diary.page(of: "monday") else {
            throw Agent.Failure(description: "not edited")
        }
        try agent.protection.lock()
        guard case .locked = try await diary.page(of: "monday") else { throw Agent.Failure(description: "not locked") }
        guard case .empty = try await diary.page(of: "tuesday") else { throw Agent.Failure(description: "a page") }
    }

    /// Of a page that was read before the lock and comes after it.
    @Test func theViewShowsNothingThatComesAfterTheLock() async throws {
        let view = DiaryView(agent.protection)
        let following = Task { await view.followLock() }
        // Until it follows.
        while view.isLocked { await Task.yield() }
        view.show("a page")
        #expect(view.text == "a page")
        try agent.protection.lock()
        while view.text != nil { await Task.yield() }
        view.show("another page")
        #expect(view.text == nil)
        following.cancel()
        await following.value
    }

    @Test func aKeybagOfOnesOwnDoesWhatItsArticleSays() async throws {
        let home = KeybagHome(directory: agent.root.appending("own"))
        do {
            try useKeybag(of: home)
            Issue.record("there is no keybag yet")
        } catch let error as ProtectionError { #expect(error.code == .noKeybag) }
        var shown: [String] = []
        try makeKeybag(in: home, passcode: "my passcode") { shown.append($0) }
        #expect(shown.count == 1 && shown.first?.utf8.count == RecoveryKey.textSize)
        // Ten is the usual grace period.
        var settings = Settings()
        settings.gracePeriod = 1
        try settings.write(to: home)
        try useKeybag(of: home)
        let file = agent.root.appending("own file")
        let protection = try FileProtection.shared
        #expect(protection.embeddedKeybag != nil && protection.lockState == .beforeFirstUnlock)
        for isScreen in [false, true] {
            do {
                try await unlock("another passcode")
                Issue.record("not the passcode")
            } catch let error as ProtectionError { #expect(error.code == .wrongPasscode) }
            try await unlock("my passcode")
            try await protection.write([1], to: file, class: .complete)
            if isScreen { try await screenWasLocked() } else { try lock() }
            #expect(protection.lockState == .locked)
            do {
                _ = try await protection.contents(of: file)
                Issue.record("not locked")
            } catch { #expect(error.code == .locked(.complete)) }
        }
    }
}
