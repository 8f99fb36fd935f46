import CCandado
import FileProtection
import Glibc
import Testing

@testable import CandadoC

/// The state matrix, through every function that has to obey it.
extension CLibraryTests {
    @Suite(.serialized) struct ClassTableTests {
        private static func canOpen(_ state: LockState) -> [Bool] {
            switch state {
            case .beforeFirstUnlock: [false, false, false, true]
            case .unlocked: [true, true, true, true]
            case .locked: [false, false, true, true]
            }
        }

        private static func canCreate(_ state: LockState) -> [Bool] {
            switch state {
            case .beforeFirstUnlock: [false, true, false, true]
            case .unlocked: [true, true, true, true]
            case .locked: [false, true, true, true]
            }
        }

        /// What a call gave: nil for success, or its errno.
        private func expect(
            _ allowed: Bool, _ outcome: Int32?, _ what: String, _ location: SourceLocation = #_sourceLocation
        ) {
            #expect(outcome == (allowed ? nil : ENOKEY), "\(what): \(lastError())", sourceLocation: location)
            if !allowed {
                #expect(candado_error_kind() == CANDADO_ERROR_LOCKED.number, "\(what)", sourceLocation: location)
                #expect(lastError().contains("candado unlock"), "\(what): no advice", sourceLocation: location)
            }
        }

        @Test(arguments: LockState.allCases) func everyClassAnswersInEveryStateAsTheMatrixSays(state: LockState) throws
        {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            for protectionClass in ProtectionClass.allCases {
                try fixture.makeFile(protectionClass.name, protectionClass)
            }
            try fixture.enter(state)
            for (index, protectionClass) in ProtectionClass.allCases.enumerated() {
                let name = "\(protectionClass.name) \(state)"
                let path = fixture.path(protectionClass.name)
                let mayOpen = Self.canOpen(state)[index]
                let mayCreate = Self.canCreate(state)[index]
                #expect(candado_can_read(protectionClass.number) == (mayOpen ? 1 : 0))
                // Without a key in every state.
                #expect(candado_class_of_path(path, 0) == protectionClass.number)
                var record = [UInt8](repeating: 0, count: Int(CANDADO_RECORD_SIZE))
                #expect(candado_record_of_path(path, 0, &record, record.count) > 20)

                for access in [CANDADO_READ, CANDADO_UPDATE] {
                    var handle: candado_file = -1
                    expect(
                        mayOpen,
                        failure {
                            handle = candado_open(path, access.number, 0)
                            return handle
                        }, "\(name): open \(access)")
                    if mayOpen { #expect(candado_close(handle) == 0) }
                }
                var bytes: UnsafeMutableRawPointer?
                var size = 1
                expect(mayOpen, failure { candado_read_file(path, &bytes, &size) }, "\(name): read a whole file")
                #expect(size == (mayOpen ? 5 : 0) && (bytes != nil) == mayOpen)
                candado_free(bytes)
                var buffer = [UInt8](repeating: 0, count: 5)
                expect(mayOpen, failure { candado_read_file_into(path, &buffer, 5) }, "\(name): read into a buffer")
                #expect(buffer == (mayOpen ? Array("hello".utf8) : [0, 0, 0, 0, 0]))

                let fresh = fixture.path("new-\(protectionClass.name)")
                expect(
                    mayCreate, failure { candado_write_file(fresh, "x", 1, protectionClass.number, exclusive) },
                    "\(name): write a new file")
                var handle: candado_file = -1
                expect(
                    mayCreate,
                    failure {
                        handle = candado_open(fresh + "-handle", CANDADO_CREATE.number, protectionClass.number)
                        return handle
                    }, "\(name): create")
                if mayCreate {
                    #expect(candado_class_of_file(handle) == protectionClass.number)
                    #expect(candado_pwrite(handle, "abc", 3, 0) == 3)
                    #expect(candado_close(handle) == 0)
                }
                // A name that is taken is taken in every state.
                #expect(
                    failure { candado_open(path, CANDADO_CREATE.number, protectionClass.number) } == EEXIST, "\(name)")
                #expect(
                    failure { candado_write_file(path, "x", 1, protectionClass.number, exclusive) } == EEXIST, "\(name)"
                )
                // What is locked is never replaced, whatever the new class.
                expect(
                    mayOpen, failure { candado_write_file(path, "hello", 5, ProtectionClass.none.number, 0) },
                    "\(name): replace")
                if mayOpen { try fixture.makeFile(protectionClass.name, .none) }
                expect(
                    mayOpen && mayCreate, failure { candado_set_class(path, protectionClass.number, 0) },
                    "\(name): set the class")
            }
        }

        @Test func aHandleThatWasOpenAtTheLockFollowsTheRulesOfItsClass() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            var handles: [(ProtectionClass, candado_file)] = []
            for protectionClass in ProtectionClass.allCases {
                try fixture.makeFile(protectionClass.name, protectionClass)
                let handle = candado_open(fixture.path(protectionClass.name), CANDADO_UPDATE.number, 0)
                #expect(handle > 0)
                #expect(candado_pwrite(handle, "J", 1, 0) == 1)
                handles.append((protectionClass, handle))
            }
            try fixture.lock()
            for (protectionClass, handle) in handles {
                let allowed = protectionClass != .complete
                let name = protectionClass.name
                var buffer = [UInt8](repeating: 0, count: 8)
                expect(allowed, failure { candado_pread(handle, &buffer, 8, 0) }, "\(name): read")
                #expect(buffer == (allowed ? Array("Jello".utf8) + [0, 0, 0] : [UInt8](repeating: 0, count: 8)))
                expect(allowed, failure { candado_length(handle) }, "\(name): length")
                expect(allowed, failure { candado_pwrite(handle, "x", 1, 0) }, "\(name): write")
                expect(allowed, failure { candado_append(handle, "x", 1) }, "\(name): append")
                expect(allowed, failure { candado_truncate(handle, 3) }, "\(name): truncate")
                expect(allowed, failure { candado_class_of_file(handle) }, "\(name): class")
                // What was written stays, and is made durable in every state.
                #expect(candado_fsync(handle) == 0, "\(name): \(lastError())")
            }
            try fixture.unlock()
            for (protectionClass, handle) in handles {
                #expect(candado_length(handle) == (protectionClass == .complete ? 5 : 3), "\(protectionClass.name)")
                #expect(candado_close(handle) == 0, "\(protectionClass.name): \(lastError())")
            }
        }

        @Test func aDirectoryGivesItsClassToNewFilesUntilItIsTakenOff() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            let directory = fixture.path("")
            #expect(candado_class_of_path(directory, 0) == 0)
            #expect(candado_set_class(directory, 1, 0) == 0)
            #expect(candado_class_of_path(directory, 0) == 1)
            #expect(candado_write_file(fixture.path("inside"), nil, 0, 0, 0) == 0)
            #expect(candado_class_of_path(fixture.path("inside"), 0) == 1)
            #expect(candado_set_class(directory, 0, 0) == 0)
            #expect(candado_class_of_path(directory, 0) == 0)
            #expect(candado_write_file(fixture.path("later"), nil, 0, 0, 0) == 0)
            #expect(candado_class_of_path(fixture.path("later"), 0) == 3)
            #expect(failure { candado_set_class(fixture.path("later"), 0, 0) } == EINVAL)
        }

        @Test func aNewKeyTakesTheWeakPastOffAFile() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            #expect(candado_set_class(fixture.path("a"), 1, 0) == 0)
            #expect(try flags(of: fixture.path("a")) == CANDADO_RECORD_KEY_WAS_WEAKER)
            #expect(candado_set_class(fixture.path("a"), 1, rekey) == 0)
            #expect(try flags(of: fixture.path("a")) == 0)
        }

        private func flags(of path: String) throws -> UInt32 {
            var bytes = [UInt8](repeating: 0, count: Int(CANDADO_RECORD_SIZE))
            let count = candado_record_of_path(path, 0, &bytes, bytes.count)
            var record = candado_record()
            try #require(candado_record_parse(bytes, count, &record) == 0)
            return UInt32(record.flags)
        }
    }
}
