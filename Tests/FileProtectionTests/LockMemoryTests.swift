import FileProtection
import TestSupport
import Testing

@testable import Keybag
@testable import ProtectedFiles

/// The lock rule, looked at in the memory itself: with handles open and used, what a lock has to take away is found
/// before it and not after.
@Suite struct LockMemoryTests {
    /// The file key of a container, as a scan.
    private static func scan(_ app: AppFixture, _ path: FilePath) throws -> MemoryScan {
        let record = try #require(try FileInspection.inspect(path).record)
        return try app.keybag.unwrap(record).withKey { MemoryScan(for: $0.bytes) }
    }

    private static func use(_ handle: ProtectedFile, _ offset: UInt64) throws {
        try Array("some more content".utf8).withUnsafeBytes { try handle.write($0, at: offset) }
        _ = try withUnsafeTemporaryAllocation(byteCount: 9000, alignment: 1) { try handle.read(into: $0, at: 0) }
    }

    @Test func afterALockNoKeyOfClassAOrBIsInMemoryWhateverHandlesAreOpen() async {
        await #expect(processExitsWith: .success) {
            // Memory of the other kind cannot be read, so the positive control needs this one.
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let app = try AppFixture()
            try app.unlock()
            let content = [UInt8](repeating: 7, count: 500_000)
            var handles: [ProtectedFile] = []
            var fileKeys: [(ProtectionClass, MemoryScan)] = []
            for protectionClass in ProtectionClass.allCases {
                let path = app.path(FilePath(protectionClass.name)!)
                try app.protection.write(content, to: path, class: protectionClass)
                handles.append(try app.protection.open(path, for: .updating))
                handles.append(try app.protection.open(path, for: .reading))
                fileKeys.append((protectionClass, try Self.scan(app, path)))
                // Every way in which a key is used: whole, on several threads, positioned, through the log, rewrapped.
                _ = try app.protection.contents(of: path)
                try Self.use(handles[handles.count - 2], 4000)
                try handles[handles.count - 2].synchronize()
            }
            _ = try app.protection.setProtectionClass(.complete, of: app.path("complete"))
            let moved = app.path("moved")
            try app.protection.write(content, to: moved, class: ProtectionClass.none)
            let movedHandle = try app.protection.open(moved, for: .updating)
            _ = try app.protection.setProtectionClass(.complete, of: moved)
            try Self.use(movedHandle, 0)
            fileKeys.append((.complete, try Self.scan(app, moved)))

            let classKeys: [(KeyClass, MemoryScan)] = try app.keybag.manager.withGuarded(nil) { guarded, _ in
                guarded.table.keys.map { ($0.key.keyClass, MemoryScan(for: $0.value.bytes)) }
            }
            let guarded: [KeyClass] = [.fileComplete, .fileCompleteUnlessOpen]
            #expect(guarded.allSatisfy { wanted in classKeys.contains { $0.0 == wanted } })
            for (keyClass, scan) in classKeys {
                #expect(try scan.copies() >= 1, "\(keyClass.name) is not found while unlocked: the scan is blind")
            }
            for (protectionClass, scan) in fileKeys {
                #expect(try scan.copies() >= 1, "a file key of \(protectionClass.name) is not found: the scan is blind")
            }
            try app.protection.lock()
            for (keyClass, scan) in classKeys { #expect(try scan.copies() == 0, "\(keyClass.name) is still there") }
            for (protectionClass, scan) in fileKeys where protectionClass == .complete {
                #expect(try scan.copies() == 0, "a file key of class complete is still there")
            }
            // Handles of the other classes go on, and trying those of class A brings nothing back.
            for (index, handle) in handles.enumerated() where index % 2 == 0 {
                let isLocked = index < 2
                #expect(code { try Self.use(handle, 100) } == (isLocked ? .locked(.complete) : nil))
            }
            #expect(code { try Self.use(movedHandle, 0) } == .locked(.complete))
            #expect(code { try app.protection.contents(of: moved) } == .locked(.complete))
            for (protectionClass, scan) in fileKeys {
                let copies = try scan.copies()
                #expect(protectionClass == .complete ? copies == 0 : copies >= 1, "\(protectionClass.name): \(copies)")
            }
            for (keyClass, scan) in classKeys { #expect(try scan.copies() == 0, "\(keyClass.name) came back") }
            for handle in handles { try handle.close() }
            for (protectionClass, scan) in fileKeys where protectionClass == .complete {
                #expect(try scan.copies() == 0, "closing brought a key back")
            }
        }
    }

    /// A file key lives as long as a handle needs it.
    @Test func aFileKeyIsGoneWithTheLastHandle() async {
        await #expect(processExitsWith: .success) {
            SecretMemory.configure(allowSecretMemoryDescriptor: false)
            let app = try AppFixture()
            try app.unlock()
            for protectionClass in ProtectionClass.allCases {
                let path = app.path(FilePath(protectionClass.name)!)
                try app.protection.write([UInt8](repeating: 9, count: 400_000), to: path, class: protectionClass)
                let scan = try Self.scan(app, path)
                #expect(try scan.copies() == 0, "\(protectionClass.name) without a handle")
                do {
                    let handle = try app.protection.open(path, for: .updating)
                    try Self.use(handle, 70_000)
                    #expect(try scan.copies() >= 1, "\(protectionClass.name) with a handle: the scan is blind")
                    try handle.close()
                }
                _ = try app.protection.contents(of: path)
                _ = try app.protection.setProtectionClass(.completeUnlessOpen, of: path)
                #expect(try scan.copies() == 0, "\(protectionClass.name) after the last handle")
            }
        }
    }
}
