import FileProtection
import Synchronization
import TestSupport
import Testing

/// The interface that apps import: what they write comes back while the lock state allows it, and never else.
@Suite struct FileProtectionTests {
    @Test(arguments: ProtectionClass.allCases)
    func whatIsWrittenComesBackByTheRulesOfItsClass(protectionClass: ProtectionClass) throws {
        let app = try AppFixture()
        #expect(app.protection.lockState == .beforeFirstUnlock)
        try app.unlock()
        let path = app.path("note")
        let content = Array("hello".utf8)
        try app.protection.write(content, to: path, class: protectionClass)
        #expect(try app.protection.contents(of: path) == content)
        #expect(try app.protection.protectionClass(of: path) == protectionClass)
        try app.protection.lock()
        #expect(app.protection.lockState == .locked)
        let isReadable = protectionClass != .complete && protectionClass != .completeUnlessOpen
        #expect(app.protection.canRead(protectionClass) == isReadable)
        #expect(code { try app.protection.contents(of: path) } == (isReadable ? nil : .locked(protectionClass)))
        #expect(try app.protection.protectionClass(of: path) == protectionClass)
        try app.unlock()
        #expect(try app.protection.contents(of: path) == content)
    }

    /// Rule 5: locked is neither absent nor empty, and a get-or-create makes nothing anew because of it.
    @Test(arguments: [ProtectionClass.complete, .completeUnlessOpen])
    func aGetOrCreateWhileLockedCreatesNothing(protectionClass: ProtectionClass) throws {
        let app = try AppFixture()
        try app.unlock()
        let path = app.path("database")
        try app.protection.write(Array("precious".utf8), to: path, class: protectionClass)
        try app.protection.lock()
        let bytes = try app.directory.read("files/database")
        /// What apps write when they mean well: any error of the read counts as "not there yet".
        func getOrCreate(_ wanted: ProtectionClass?) throws -> [UInt8] {
            do { return try app.protection.contents(of: path) } catch {
                guard error.code == .system(ErrorNumber.noEntry) else { throw error }
            }
            try app.protection.write([], to: path, class: wanted)
            return []
        }
        for wanted in ProtectionClass.allCases.map(Optional.some) + [nil] {
            #expect(code { try getOrCreate(wanted) } == .locked(protectionClass))
            // Even those who do not look at the error replace nothing.
            #expect(code { try app.protection.write([], to: path, class: wanted) } == .locked(protectionClass))
            #expect(code { try app.protection.open(path, for: .creating(wanted)) } != nil)
            #expect(code { try app.protection.open(path, for: .updating) } == .locked(protectionClass))
        }
        #expect(try app.directory.read("files/database") == bytes)
        #expect(try app.directory.names(in: "files") == ["database"])
        // What is not there is not there, in every state.
        #expect(code { try app.protection.contents(of: app.path("nothing")) } == .system(ErrorNumber.noEntry))
        try app.unlock()
        #expect(try getOrCreate(nil) == Array("precious".utf8))
    }

    @Test func lockEventsComeInOrderForEveryObserver() async throws {
        let app = try AppFixture()
        let first = app.protection.lockEvents()
        try app.unlock()
        try app.protection.lock()
        let late = app.protection.lockEvents()
        // A lock of what is locked is no event.
        try app.protection.lock()
        try app.unlock()
        var events: [LockEvent] = []
        for await event in first {
            events.append(event)
            if events.count == 4 { break }
        }
        #expect(events == [.didUnlock, .willLock(grace: 0), .didLock, .didUnlock])
        for await event in late {
            #expect(event == .didUnlock)
            break
        }
    }

    @Test func aHandleOfTheInterfaceObeysTheMatrix() throws {
        let app = try AppFixture()
        try app.unlock()
        let handle = try app.protection.open(app.path("new"), for: .creating(.complete))
        try Array("12345".utf8).withUnsafeBytes { try handle.write($0, at: 0) }
        try app.protection.lock()
        #expect(code { try handle.length } == .locked(.complete))
        try app.unlock()
        #expect(try handle.length == 5)
        try handle.close()
        #expect(code { try handle.length } == .system(ErrorNumber.badDescriptor))
        try handle.close()
        let change = try app.protection.setProtectionClass(.none, of: app.path("new"))
        #expect(change == ClassChange(changed: true, from: .complete, to: .none))
        #expect(try app.protection.setProtectionClass(.none, of: app.path("new")).changed == false)
        #expect(try app.protection.setProtectionClass(.complete, of: app.path("new"), rekey: true).changed)
    }

    @Test func wrongPasscodesAndMissingOnesAreTyped() throws {
        let app = try AppFixture()
        #expect(code { try app.protection.unlock(passcode: try AppFixture.secret("wrong")) } == .wrongPasscode)
        #expect(app.protection.lockState == .beforeFirstUnlock)
        let open = try AppFixture(passcode: nil)
        #expect(open.protection.lockState == .unlocked)
        #expect(code { try open.protection.lock() } == .noPasscodeSet)
        #expect(code { try FileProtection.open(KeybagHome(directory: open.path("nowhere"))) } == .noKeybag)
    }

    @Test func theSettingsOfTheHomeHold() throws {
        var settings = Settings()
        settings.defaultClass = .complete
        settings.gracePeriod = 25
        let app = try AppFixture(settings)
        try app.unlock()
        try app.protection.write([1], to: app.path("file"))
        #expect(try app.protection.protectionClass(of: app.path("file")) == .complete)
        #expect(try app.keybag.lock(reason: .idle) == .graceRunning(seconds: 25))
        app.clock.advance(by: 24)
        #expect(try app.protection.contents(of: app.path("file")) == [1])
        app.clock.advance(by: 1)
        #expect(code { try app.protection.contents(of: app.path("file")) } == .locked(.complete))
    }

    /// The capsule lies at the root of a tree, and never in the home by way of a conversion of the home.
    @Test func convertingKeepsTheHomeOutAndPutsTheCapsuleAtTheRoot() throws {
        let app = try AppFixture()
        try app.unlock()
        let key = try RecoveryKey.generate()
        try app.keybag.setRecoveryKey(key)
        try app.directory.write([1, 2, 3], to: "files/plain")
        func convert(_ path: FilePath, _ conversion: Conversion) throws -> [ProtectionError.Code?] {
            let results = Mutex<[ProtectionError.Code?]>([])
            var options = TreeConversion.Options()
            options.recursive = true
            try app.protection.convert(path, conversion, options: options) { outcome in
                results.withLock {
                    if case .failed(let error) = outcome.result { $0.append(error.code) } else { $0.append(nil) }
                }
            }
            return results.withLock { $0 }
        }
        let home = app.directory.appending("home")
        let before = try app.directory.names(in: "home")
        for inner: FilePath in [".", "state", "keybag.json", "settings/..", "state/device-key"] {
            let path = home.appending(inner)
            guard (try? LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false)) != nil
            else {
                continue
            }
            #expect(try convert(path, .protect(.complete)) == [.unsupported], "\(inner)")
        }
        #expect(try app.directory.names(in: "home") == before)
        #expect(try convert(app.path("."), .protect(.complete)) == [nil])
        #expect(try app.directory.names(in: "files") == [".candado-recovery", "plain"])
        #expect(try app.directory.read("files/.candado-recovery") == (try app.keybag.recoveryCapsule()))
        // From above, the home is left out and its keybag opens afterwards.
        _ = try convert(app.directory.path, .protect(.complete))
        let again = try FileProtection.open(KeybagHome(directory: home), clock: app.clock)
        try again.unlock(passcode: try AppFixture.secret(AppFixture.passcode))
        #expect(try again.contents(of: app.path("plain")) == [1, 2, 3])
    }
}
