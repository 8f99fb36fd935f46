import FileProtection
import Testing

/// What a table of cells cannot say: locks and changes of class under open handles. With keys in this process and with an
/// agent's.
@Suite struct HandleTests {
    enum Keys: String, CaseIterable {
        case embedded
        case agent

        func place() throws -> any StateMatrixPlace {
            switch self {
            case .embedded: try EmbeddedPlace()
            case .agent: try AgentPlace()
            }
        }
    }

    private static let content = pattern(5000)

    /// xnu `tests/data_protection.c`, cases 10 to 12.
    @Test(arguments: Keys.allCases)
    func noneToBOnAnOpenFileWorksWhileLockedAndTheHandleGoesOn(keys: Keys) throws {
        let place = try keys.place()
        let path = place.directory.appending("file")
        try place.protection.write(Self.content, to: path, class: ProtectionClass.none)
        let handle = try place.protection.open(path, for: .updating)
        try place.enter(.locked)
        try place.protection.setProtectionClass(.completeUnlessOpen, of: path)
        #expect(try place.protection.protectionClass(of: path) == .completeUnlessOpen)
        try handle.write([1, 2, 3], at: 4095)
        #expect(try handle.read(3, at: 4095) == [1, 2, 3])
        #expect(try handle.protectionClass == .completeUnlessOpen)
        try handle.close()
        #expect(code { try place.protection.open(path, for: .reading) } == .locked(.completeUnlessOpen))
        try place.unlock()
        #expect(try place.protection.contents(of: path) == Self.content[..<4095] + [1, 2, 3] + Self.content[4098...])
    }

    /// All pairs of classes: a handle obeys the class that the file has now, in every later state.
    @Test(arguments: Keys.allCases, ProtectionClass.allCases)
    func aHandleFollowsAChangeOfClass(keys: Keys, old: ProtectionClass) throws {
        let place = try keys.place()
        for new in ProtectionClass.allCases {
            for isUsed in [true, false] { try follow(in: place, from: old, to: new, isUsed: isUsed) }
        }
    }

    private func follow(
        in place: any StateMatrixPlace, from old: ProtectionClass, to new: ProtectionClass, isUsed: Bool
    ) throws {
        let name = Comment(rawValue: "\(old.name) to \(new.name), used \(isUsed)")
        let protection = place.protection
        let path = place.directory.appending(FilePath("\(new.name)-\(isUsed)") ?? ".")
        try protection.write(Self.content, to: path, class: old)
        let reader = try protection.open(path, for: .reading)
        let writer = try protection.open(path, for: .updating)
        let change = try protection.setProtectionClass(new, of: path)
        #expect(change == ClassChange(changed: old != new, from: old, to: new), name)
        if isUsed {
            #expect(try writer.protectionClass == new, name)
            #expect(try reader.read(10, at: 0) == Array(Self.content[..<10]), name)
        }
        try place.enter(.locked)
        let expected: ProtectionError.Code? = new == .complete ? .locked(.complete) : nil
        // From A to B without an operation in between: no key was lent that could outlive the lock.
        let isTooLate = old == .complete && new == .completeUnlessOpen && !isUsed
        let outcome = isTooLate ? .locked(new) : expected
        #expect(code { try reader.read(10, at: 0) } == outcome, name)
        #expect(code { try writer.write([1], at: 0) } == outcome, name)
        #expect(code { try writer.truncate(to: 100) } == outcome, name)
        try place.unlock()
        try writer.write([7], at: 0)
        #expect(try reader.read(1, at: 0) == [7], name)
        try writer.close()
        let size = outcome == nil ? 100 : Self.content.count
        #expect(try protection.contents(of: path) == [7] + Self.content[1..<size], name)
    }

    /// A lock takes the key from a handle, and each lock anew.
    @Test(arguments: Keys.allCases)
    func aHandleOfClassCompleteIsLockedByEveryLockAndGoesOnAfterEveryUnlock(keys: Keys) throws {
        let place = try keys.place()
        let path = place.directory.appending("file")
        let handle = try place.protection.open(path, for: .creating(.complete))
        var content: [UInt8] = []
        for round in 0..<4 {
            try handle.write([UInt8(round)], at: content.count)
            content.append(UInt8(round))
            try place.enter(.locked)
            #expect(code { try handle.read(1, at: 0) } == .locked(.complete))
            #expect(code { try handle.append(UnsafeRawBufferPointer(start: nil, count: 0)) } == .locked(.complete))
            #expect(code { try handle.length } == .locked(.complete))
            if round % 2 == 0 { try handle.synchronize() }
            try place.unlock()
            #expect(try handle.allContent() == content)
        }
        try place.enter(.locked)
        try handle.close()
        try place.unlock()
        #expect(try place.protection.contents(of: path) == content)
    }
}
