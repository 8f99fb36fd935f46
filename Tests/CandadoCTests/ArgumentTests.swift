import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// Arguments that make no sense: each is an errno, and none ends the process.
extension CLibraryTests {
    @Suite(.serialized) struct ArgumentTests {
        private static let hugeSizes = [Int.min, -1, -4096]
        private static let classes: [Int32] = [-1, 5, 6, 7, 255, 256, 257, 260, .max, .min]

        @Test func nothingIsDoneWithNull() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            let path = fixture.path("a")
            let file = candado_open(path, CANDADO_UPDATE.number, 0)
            let events = candado_events_open()
            var record = candado_record()
            var size = 0
            var bytes: UnsafeMutableRawPointer?
            let calls: [(String, Int32?)] = [
                ("class_named", failure { candado_class_named(nil) }),
                ("class_of_path", failure { candado_class_of_path(nil, 0) }),
                ("record_parse bytes", failure { candado_record_parse(nil, 60, &record) }),
                ("record_parse place", failure { candado_record_parse([1], 1, nil) }),
                ("record_encode", failure { candado_record_encode(nil, nil, 0) }),
                ("record_describe", failure { candado_record_describe(nil, nil, 0) }),
                ("record_of_path", failure { candado_record_of_path(nil, 0, nil, 0) }),
                ("record_of_path buffer", failure { candado_record_of_path(path, 0, nil, 60) }),
                ("record_of_descriptor buffer", failure { candado_record_of_descriptor(0, nil, 60) }),
                ("set_record_of_path", failure { candado_set_record_of_path(nil, 0, [1], 1) }),
                ("set_record_of_path bytes", failure { candado_set_record_of_path(path, 0, nil, 60) }),
                ("set_record_of_descriptor", failure { candado_set_record_of_descriptor(0, 0, nil, 60) }),
                ("events_next", failure { candado_events_next(events, nil) }),
                ("open", failure { candado_open(nil, CANDADO_READ.number, 0) }),
                ("pread", failure { candado_pread(file, nil, 1, 0) }),
                ("pwrite", failure { candado_pwrite(file, nil, 1, 0) }),
                ("append", failure { candado_append(file, nil, 1) }),
                ("read_file", failure { candado_read_file(nil, &bytes, &size) }),
                ("read_file bytes", failure { candado_read_file(path, nil, &size) }),
                ("read_file size", failure { candado_read_file(path, &bytes, nil) }),
                ("read_file_into", failure { candado_read_file_into(nil, nil, 0) }),
                ("read_file_into buffer", failure { candado_read_file_into(path, nil, 5) }),
                ("write_file", failure { candado_write_file(nil, "x", 1, 0, 0) }),
                ("write_file bytes", failure { candado_write_file(path, nil, 1, 0, 0) }),
                ("set_class", failure { candado_set_class(nil, 1, 0) }),
            ]
            for (name, number) in calls { #expect(number == EFAULT, "\(name): \(lastError())") }
            #expect(candado_error_kind() == CANDADO_ERROR_INVALID_ARGUMENT.number)
            #expect(candado_use_home(nil) == 0)
            candado_free(nil)
            // A size of 0 needs no memory.
            #expect(candado_pread(file, nil, 0, 0) == 0)
            #expect(candado_pwrite(file, nil, 0, 0) == 0)
            #expect(candado_append(file, nil, 0) == 5)
            #expect(candado_record_of_descriptor(file > 0 ? openedForNothing(path) : -1, nil, 0) == -1)
            #expect(errno == ERANGE)
            #expect(candado_close(file) == 0)
            #expect(candado_events_close(events) == 0)
        }

        private func openedForNothing(_ path: String) -> Int32 { open(path, O_RDONLY | O_CLOEXEC) }

        @Test func sizesOffsetsClassesAndFlagsThatMakeNoSenseAreRefused() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            let path = fixture.path("a")
            let file = candado_open(path, CANDADO_UPDATE.number, 0)
            var record = candado_record()
            var byte: UInt8 = 0
            for size in Self.hugeSizes {
                let calls: [(String, Int32?)] = [
                    ("record_parse", failure { candado_record_parse(&byte, size, &record) }),
                    ("record_of_path", failure { candado_record_of_path(path, 0, &byte, size) }),
                    ("record_of_descriptor", failure { candado_record_of_descriptor(0, &byte, size) }),
                    ("set_record_of_path", failure { candado_set_record_of_path(path, 0, &byte, size) }),
                    ("set_record_of_descriptor", failure { candado_set_record_of_descriptor(0, 0, &byte, size) }),
                    ("pread", failure { candado_pread(file, &byte, size, 0) }),
                    ("pwrite", failure { candado_pwrite(file, &byte, size, 0) }),
                    ("append", failure { candado_append(file, &byte, size) }),
                    ("read_file_into", failure { candado_read_file_into(path, &byte, size) }),
                    ("write_file", failure { candado_write_file(path, &byte, size, 0, 0) }),
                ]
                for (name, number) in calls { #expect(number == EINVAL, "\(name) of \(size)") }
            }
            for offset in [Int64.min, -1] {
                #expect(failure { candado_pread(file, &byte, 1, offset) } == EINVAL)
                #expect(failure { candado_pwrite(file, &byte, 1, offset) } == EINVAL)
                #expect(failure { candado_truncate(file, offset) } == EINVAL)
            }
            for number in Self.classes {
                #expect(failure { candado_open(fixture.path("new"), CANDADO_CREATE.number, number) } == EINVAL)
                #expect(failure { candado_write_file(path, "x", 1, number, 0) } == EINVAL)
                #expect(failure { candado_set_class(path, number, 0) } == EINVAL)
                #expect(failure { candado_can_read(number) } == EINVAL)
                #expect(candado_class_name(number) == nil)
                #expect(errno == EINVAL)
            }
            #expect(failure { candado_can_read(0) } == EINVAL)
            for access: Int32 in [0, 4, -1, .max, .min] {
                #expect(failure { candado_open(path, access, 0) } == EINVAL)
            }
            // A file that exists has its class.
            #expect(failure { candado_open(path, CANDADO_READ.number, 1) } == EINVAL)
            for flags: UInt32 in [16, 0x8000_0000, .max] {
                #expect(failure { candado_class_of_path(path, flags) } == EINVAL)
                #expect(failure { candado_record_of_path(path, flags, nil, 0) } == EINVAL)
                #expect(failure { candado_set_record_of_path(path, flags, &byte, 1) } == EINVAL)
                #expect(failure { candado_set_record_of_descriptor(0, flags, &byte, 1) } == EINVAL)
                #expect(failure { candado_write_file(path, "x", 1, 0, flags) } == EINVAL)
                #expect(failure { candado_set_class(path, 1, flags) } == EINVAL)
            }
            // Nothing of all that has changed the file.
            #expect(candado_length(file) == 5 && candado_class_of_path(path, 0) == 1)
            #expect(candado_close(file) == 0)
        }

        @Test func farPlacesAreTooLargeAndNothingIsThere() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .none)
            let file = candado_open(fixture.path("a"), CANDADO_UPDATE.number, 0)
            var buffer = [UInt8](repeating: 0, count: 16)
            for offset in [5, 4096, 1 << 60, 1 << 62, Int64.max] {
                #expect(candado_pread(file, &buffer, 16, offset) == 0)
            }
            for offset in [1 << 61, Int64.max - 1, Int64.max] {
                #expect(failure { candado_pwrite(file, "x", 1, offset) } == EFBIG)
                #expect(failure { candado_truncate(file, offset) } == EFBIG)
            }
            #expect(candado_length(file) == 5)
            #expect(candado_close(file) == 0)
        }

        @Test func pathsAreBytes() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            for name: [UInt8] in [[0xFF, 0xFE, 0x80], Array("a\nb".utf8), Array(repeating: 0xC3, count: 200)] {
                let path = (Array(fixture.path("").utf8) + name + [0]).map { CChar(bitPattern: $0) }
                #expect(candado_write_file(path, "hello", 5, 1, 0) == 0, "\(lastError())")
                var buffer = [UInt8](repeating: 0, count: 5)
                #expect(candado_read_file_into(path, &buffer, 5) == 5)
                #expect(buffer == Array("hello".utf8))
                #expect(candado_class_of_path(path, 0) == 1)
            }
            #expect(try fixture.directory.names(in: "files").count == 3)
            for call: (UnsafePointer<CChar>) -> Int32 in [
                { candado_class_of_path($0, 0) }, { candado_use_home($0) }, { candado_set_class($0, 1, 0) },
                { candado_write_file($0, nil, 0, 0, 0) }, { candado_open($0, CANDADO_CREATE.number, 0) < 0 ? -1 : 0 },
            ] {
                #expect(failure { call("") } == ENOENT)
            }
            let long = String(repeating: "x", count: 300)
            #expect(failure { candado_class_of_path(fixture.path(long), 0) } == ENAMETOOLONG)
            #expect(failure { candado_open(fixture.path(long), CANDADO_CREATE.number, 1) } == ENAMETOOLONG)
            #expect(failure { candado_class_of_path(String(repeating: "a/", count: 40_000), 0) } == ENAMETOOLONG)
        }

        @Test func kindsOfFileThatCannotBeProtectedAreTold() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            try fixture.directory.write(Array("plain".utf8), to: "files/plain")
            let link = fixture.path("link")
            symlink("a", link)
            mkfifo(fixture.path("pipe"), 0o600)
            #expect(failure { candado_class_of_path(link, 0) } == EOPNOTSUPP)
            #expect(candado_class_of_path(link, follow) == 1)
            #expect(candado_class_of_path(fixture.path("plain"), follow) == 0)
            #expect(failure { candado_class_of_path(fixture.path("none"), follow) } == ENOENT)
            for path in [fixture.path("pipe"), "/dev/null"] {
                #expect(failure { candado_class_of_path(path, 0) } == EOPNOTSUPP)
                #expect(failure { candado_class_of_path(path, follow) } == EOPNOTSUPP)
                #expect(failure { candado_open(path, CANDADO_READ.number, 0) } == EOPNOTSUPP)
                #expect(candado_error_kind() == CANDADO_ERROR_UNSUPPORTED.number)
            }
            #expect(failure { candado_open(link, CANDADO_READ.number, 0) } == EOPNOTSUPP)
            #expect(failure { candado_open(fixture.path(""), CANDADO_READ.number, 0) } == EOPNOTSUPP)
            #expect(failure { candado_open(fixture.path("plain"), CANDADO_READ.number, 0) } == ENODATA)
            #expect(candado_error_kind() == CANDADO_ERROR_NOT_PROTECTED.number)
            #expect(failure { candado_open(fixture.path("a"), CANDADO_CREATE.number, 0) } == EEXIST)
            #expect(failure { candado_write_file(fixture.path("a"), nil, 0, 0, exclusive) } == EEXIST)
        }

        @Test func aLinkIsToldWithWhatFollowsIt() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            let link = fixture.path("link")
            symlink("a", link)
            var record = [UInt8](repeating: 0, count: 124)
            let count = candado_record_of_path(fixture.path("a"), 0, &record, 124)
            for call in [
                { candado_class_of_path(link, 0) },
                { Int32(candado_record_of_path(link, 0, &record, 124)) },
                { candado_set_record_of_path(link, 0, record, count) },
            ] {
                #expect(failure(call) == EOPNOTSUPP)
                #expect(lastError().contains("this is a symbolic link"), "\(lastError())")
                #expect(lastError().contains("CANDADO_FOLLOW"), "\(lastError())")
                #expect(lastError().contains("link'") && !lastError().contains("oo many"), "\(lastError())")
            }
        }

        /// Following leads nowhere, so that nobody is told to follow.
        @Test func linksThatLeadRoundInCirclesAreTooMany() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            symlink("circle", fixture.path("circle"))
            let (circle, inside) = (fixture.path("circle"), fixture.path("circle/a"))
            var buffer = [UInt8](repeating: 0, count: 124)
            let good = Array("1A".utf8) + [0, 0] + [UInt8](0x10...0x1F)
            let calls: [(String, Int32?)] = [
                ("class, followed", failure { candado_class_of_path(circle, follow) }),
                ("record, followed", failure { candado_record_of_path(circle, follow, &buffer, 124) }),
                ("set record, followed", failure { candado_set_record_of_path(circle, follow, good, 20) }),
                ("class", failure { candado_class_of_path(inside, 0) }),
                ("class inside, followed", failure { candado_class_of_path(inside, follow) }),
                ("record", failure { candado_record_of_path(inside, 0, &buffer, 124) }),
                ("set record", failure { candado_set_record_of_path(inside, 0, good, 20) }),
                ("open", failure { candado_open(inside, CANDADO_READ.number, 0) }),
                ("create", failure { candado_open(inside, CANDADO_CREATE.number, 1) }),
                ("read", failure { candado_read_file_into(inside, &buffer, 124) }),
                ("write", failure { candado_write_file(inside, "x", 1, 1, 0) }),
                ("set class", failure { candado_set_class(inside, 1, 0) }),
                ("take the class off", failure { candado_set_class(inside, 0, 0) }),
            ]
            for (name, number) in calls { #expect(number == ELOOP, "\(name)") }
            #expect(candado_error_kind() == CANDADO_ERROR_SYSTEM.number)
            #expect(failure { candado_class_of_path(circle, follow) } == ELOOP)
            #expect(lastError().contains("too many symbolic links"), "\(lastError())")
            #expect(!lastError().contains("CANDADO_FOLLOW"), "\(lastError())")
        }

        @Test func aHomeThatIsNoneIsToldAndNothingIsWrittenPlain() throws {
            let fixture = try LibraryFixture()
            try fixture.directory.makeDirectory("empty")
            for home in [fixture.path("nowhere"), fixture.directory.appending("empty").description] {
                #expect(candado_use_home(home) == 0)
                for call in [
                    { candado_connect_agent() }, { candado_lock_state() }, { candado_can_read(4) },
                    { candado_write_file(fixture.path("a"), "x", 1, 1, 0) },
                    { candado_open(fixture.path("a"), CANDADO_CREATE.number, 1) < 0 ? -1 : 0 },
                    { candado_events_open() < 0 ? -1 : 0 },
                ] {
                    #expect(failure(call) == ENOKEY)
                    #expect(candado_error_kind() == CANDADO_ERROR_NO_KEYBAG.number)
                    #expect(lastError().contains("'candado init'"), "\(lastError())")
                }
            }
            #expect(try fixture.directory.names(in: "files").isEmpty)
            // The home has a keybag, and no agent.
            #expect(candado_use_home(fixture.home.directory.description) == 0)
            #expect(failure { candado_open(fixture.path("a"), CANDADO_CREATE.number, 1) } == ECONNREFUSED)
            #expect(candado_error_kind() == CANDADO_ERROR_AGENT_NOT_REACHABLE.number)
            #expect(lastError().hasSuffix("'candado unlock' starts it"), "\(lastError())")
            #expect(try fixture.directory.names(in: "files").isEmpty)
        }

        @Test func whatIsWrongWithAFileIsToldWithoutAnAgent() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            try fixture.directory.write(Array("plain".utf8), to: "files/plain")
            symlink("a", fixture.path("link"))
            #expect(candado_use_home(fixture.home.directory.description) == 0)
            var bytes: UnsafeMutableRawPointer?
            var size = 0
            func answers(_ name: String) -> [Int32?] {
                let path = fixture.path(name)
                return [
                    failure { candado_open(path, CANDADO_READ.number, 0) },
                    failure { candado_open(path, CANDADO_UPDATE.number, 0) },
                    failure { candado_read_file(path, &bytes, &size) },
                    failure { candado_read_file_into(path, nil, 0) }, failure { candado_set_class(path, 1, 0) },
                ]
            }
            for (name, number) in [
                ("plain", ENODATA), ("missing", ENOENT), ("plain/inside", ENOTDIR), ("link", EOPNOTSUPP),
                ("a", ECONNREFUSED),
            ] {
                #expect(answers(name) == [Int32?](repeating: number, count: 5), "\(name): \(lastError())")
            }
            #expect(failure { candado_open(fixture.path(""), CANDADO_READ.number, 0) } == EOPNOTSUPP)
            #expect(failure { candado_set_class(fixture.path(""), 1, 0) } == ECONNREFUSED)
            for name in ["a", "plain", "link", ""] {
                #expect(failure { candado_open(fixture.path(name), CANDADO_CREATE.number, 1) } == EEXIST, "\(name)")
                #expect(failure { candado_write_file(fixture.path(name), "x", 1, 1, exclusive) } == EEXIST, "\(name)")
            }
        }
    }
}
