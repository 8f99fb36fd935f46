import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// Key records: taken apart, put together, read off files and stored on copies.
extension CLibraryTests {
    @Suite(.serialized) struct RecordTests {
        private static let prefix: [UInt8] = Array(0x10..<0x20)

        private func samples() -> [[UInt8]] {
            let keybag = Self.prefix
            let directory: [UInt8] = Array("1A".utf8) + [0, 0] + keybag
            let symmetric: [UInt8] = Array("1C".utf8) + [1, 7] + keybag + (0..<40).map { UInt8(200 + $0) }
            let asymmetric: [UInt8] = Array("1B".utf8) + [0, 255] + keybag + (0..<104).map { UInt8($0) }
            return [directory, symmetric, asymmetric]
        }

        @Test func whatIsTakenApartGivesTheSameBytesAgain() {
            for (kind, bytes) in samples().enumerated() {
                var record = candado_record()
                #expect(candado_record_parse(bytes, bytes.count, &record) == 0)
                #expect(record.version == 1 && record.kind == UInt8(kind) && record.letter == bytes[1])
                #expect(record.protection_class == bytes[1] - 0x40)
                #expect(record.flags == bytes[2] && record.generation == bytes[3])
                #expect(withUnsafeBytes(of: &record.keybag) { Array($0) } == Self.prefix)
                #expect(Int(record.wrap_size) == bytes.count - 20)
                var again = [UInt8](repeating: 0xEE, count: 124)
                #expect(candado_record_encode(&record, &again, again.count) == bytes.count)
                #expect(Array(again.prefix(bytes.count)) == bytes)
                #expect(again.dropFirst(bytes.count).allSatisfy { $0 == 0xEE })
                #expect(failure { candado_record_encode(&record, &again, bytes.count - 1) } == ERANGE)
            }
        }

        @Test func aRecordIsDescribedInOneLine() {
            let expected = [
                "class A (complete), for new files in a directory, keybag 10111213-1415-1617-1819-1a1b1c1d1e1f",
                """
                class C (until-first-unlock), generation 7, keybag 10111213-1415-1617-1819-1a1b1c1d1e1f, the key was once \
                wrapped for a weaker class
                """,
                "class B (complete-unless-open), generation 255, keybag 10111213-1415-1617-1819-1a1b1c1d1e1f",
            ]
            for (bytes, sentence) in zip(samples(), expected) {
                var record = candado_record()
                #expect(candado_record_parse(bytes, bytes.count, &record) == 0)
                var text = [CChar](repeating: 1, count: 256)
                #expect(candado_record_describe(&record, &text, text.count) == sentence.utf8.count)
                #expect(String(decoding: text.prefix(sentence.utf8.count).map { UInt8($0) }, as: UTF8.self) == sentence)
                #expect(candado_record_describe(&record, nil, 0) == sentence.utf8.count)
                #expect(candado_record_describe(&record, &text, 8) == sentence.utf8.count)
                #expect(text[7] == 0 && text[6] != 0)
            }
        }

        @Test func whatIsNoRecordIsRefused() {
            var record = candado_record()
            var future = samples()[1]
            future[0] = UInt8(ascii: "2")
            #expect(failure { candado_record_parse(future, future.count, &record) } == EOPNOTSUPP)
            #expect(candado_error_kind() == CANDADO_ERROR_NEEDS_NEWER_VERSION.number)
            for bytes in samples() {
                for count in 0..<bytes.count where ![20, 60].contains(count) {
                    #expect(failure { candado_record_parse(bytes, count, &record) } == EBADMSG, "\(count)")
                }
                #expect(failure { candado_record_parse(bytes + [0], bytes.count + 1, &record) } == EBADMSG)
            }
            let many = [UInt8](repeating: UInt8(ascii: "1"), count: 1 << 20)
            #expect(failure { candado_record_parse(many, many.count, &record) } == EBADMSG)
        }

        @Test func fieldsThatSayTwoThingsMakeNoRecord() {
            for bytes in samples() {
                var good = candado_record()
                #expect(candado_record_parse(bytes, bytes.count, &good) == 0)
                var buffer = [UInt8](repeating: 0, count: 124)
                // Any byte of the fields that is changed gives another record, or none.
                for index in 0..<MemoryLayout<candado_record>.size {
                    var changed = good
                    withUnsafeMutableBytes(of: &changed) { $0[index] ^= 0x55 }
                    let count = candado_record_encode(&changed, &buffer, buffer.count)
                    guard count >= 0 else {
                        #expect(errno == EINVAL)
                        #expect(failure { candado_record_describe(&changed, nil, 0) } == EINVAL)
                        continue
                    }
                    #expect(Array(buffer.prefix(count)) != bytes)
                    var again = candado_record()
                    #expect(candado_record_parse(buffer, count, &again) == 0)
                    #expect(
                        withUnsafeBytes(of: &again) { left in
                            withUnsafeBytes(of: &changed) { left.elementsEqual($0) }
                        })
                }
            }
        }

        @Test func aFileCopiedWithItsRecordOpensLikeTheFirst() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            for protectionClass in ProtectionClass.allCases {
                let name = protectionClass.name
                try fixture.makeFile(name, protectionClass)
                try fixture.directory.write(
                    try fixture.directory.read(FilePath("files/" + name) ?? "."), to: "files/copy")
                let copy = fixture.path("copy")
                var record = [UInt8](repeating: 0, count: 124)
                let count = candado_record_of_path(fixture.path(name), 0, &record, record.count)
                #expect(count == (protectionClass == .completeUnlessOpen ? 124 : 60))
                #expect(candado_set_record_of_path(copy, 0, record, count) == 0, "\(lastError())")
                // Once more is no change.
                #expect(candado_set_record_of_path(copy, 0, record, count) == 0)
                #expect(candado_class_of_path(copy, 0) == protectionClass.number)
                var content = [UInt8](repeating: 0, count: 5)
                #expect(candado_read_file_into(copy, &content, 5) == 5, "\(lastError())")
                #expect(content == Array("hello".utf8))
                // Another record replaces it only where that is asked for.
                let other = samples()[1]
                #expect(failure { candado_set_record_of_path(copy, 0, other, other.count) } == EEXIST)
                #expect(candado_set_record_of_path(copy, replace, other, other.count) == 0)
                #expect(unlink(copy) == 0)
            }
        }

        @Test func aDescriptorAnswersLikeItsPath() throws {
            let fixture = try LibraryFixture()
            try fixture.unlock()
            try fixture.makeFile("a", .complete)
            try fixture.directory.write(Array("plain".utf8), to: "files/plain")
            #expect(candado_set_class(fixture.path(""), 2, 0) == 0)
            var byPath = [UInt8](repeating: 0, count: 124)
            var byDescriptor = byPath
            for (name, expected, size) in [("a", Int32(1), 60), ("plain", 0, 0), ("", 2, 20)] {
                let descriptor = open(fixture.path(name), O_RDONLY | O_CLOEXEC)
                defer { close(descriptor) }
                lseek(descriptor, 3, SEEK_SET)
                #expect(candado_class_of_descriptor(descriptor) == expected)
                #expect(candado_record_of_path(fixture.path(name), follow, &byPath, 124) == size)
                #expect(candado_record_of_descriptor(descriptor, &byDescriptor, 124) == size)
                #expect(byPath == byDescriptor)
                if name != "" { #expect(lseek(descriptor, 0, SEEK_CUR) == 3) }
            }
            // Without the attribute, the header's copy counts, also of a file that has no name any more.
            let descriptor = open(fixture.path("a"), O_RDONLY | O_CLOEXEC)
            defer { close(descriptor) }
            let count = candado_record_of_descriptor(descriptor, &byPath, 124)
            try LinuxSystemCalls.shared.removeAttribute(KeyRecord.attributeName, of: descriptor)
            #expect(unlink(fixture.path("a")) == 0)
            #expect(candado_class_of_descriptor(descriptor) == 1)
            #expect(candado_record_of_descriptor(descriptor, &byDescriptor, 124) == count)
            #expect(byPath == byDescriptor)
            #expect(candado_set_record_of_descriptor(descriptor, 0, byPath, count) == 0)
            // Numbers that are no open descriptors, the one of the current directory among them.
            for number: Int32 in [-1, -100, 1 << 20, .max, .min] {
                #expect(failure { candado_class_of_descriptor(number) } == EBADF, "\(number)")
                #expect(failure { candado_record_of_descriptor(number, &byPath, 124) } == EBADF)
                #expect(failure { candado_set_record_of_descriptor(number, 0, byPath, count) } == EBADF)
            }
            var ends: [Int32] = [0, 0]
            #expect(pipe(&ends) == 0)
            #expect(failure { candado_class_of_descriptor(ends[0]) } == EOPNOTSUPP)
            #expect(failure { candado_set_record_of_descriptor(ends[0], 0, byPath, count) } == EOPNOTSUPP)
            close(ends[0])
            close(ends[1])
        }

        @Test func aRecordGoesOnlyWhereItBelongs() throws {
            let fixture = try LibraryFixture()
            try fixture.directory.write([], to: "files/a")
            symlink("a", fixture.path("link"))
            let (directory, file) = (samples()[0], samples()[1])
            #expect(failure { candado_set_record_of_path(fixture.path("a"), 0, directory, 20) } == EINVAL)
            #expect(failure { candado_set_record_of_path(fixture.path(""), 0, file, 60) } == EINVAL)
            #expect(failure { candado_set_record_of_path(fixture.path("link"), 0, file, 60) } == EOPNOTSUPP)
            #expect(failure { candado_set_record_of_path(fixture.path("a"), 0, "nonsense", 8) } == EBADMSG)
            #expect(candado_class_of_path(fixture.path("a"), 0) == 0)
            #expect(candado_set_record_of_path(fixture.path(""), 0, directory, 20) == 0)
            #expect(candado_class_of_path(fixture.path(""), 0) == 1)
            #expect(candado_set_record_of_path(fixture.path("link"), follow, file, 60) == 0)
            // A record on a file that is none of ours is damage, and says so.
            #expect(candado_class_of_path(fixture.path("a"), 0) == 3)
            #expect(failure { candado_open(fixture.path("a"), CANDADO_READ.number, 0) } != nil)
        }
    }
}
