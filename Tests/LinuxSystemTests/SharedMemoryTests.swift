import Glibc
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct SharedMemoryTests {
    private static let page = sysconf(Int32(_SC_PAGESIZE))

    @Test(arguments: InterprocessUnderTest.allCases) func othersSeeWhatIsWritten(system: InterprocessUnderTest) throws {
        let calls = system.calls
        let made = try calls.makeSharedMemory(size: 2 * Self.page, writableByOthers: false, locked: false)
        let descriptor = owned(made.descriptor)
        #expect(isCloseOnExec(descriptor.number))
        #expect(made.mapping.size == 2 * Self.page)
        #expect(!made.isLocked)
        let seen = try calls.mapSharedMemory(descriptor.number, size: 2 * Self.page, writable: false)
        #expect(UnsafeRawBufferPointer(start: seen.address, count: seen.size).allSatisfy { $0 == 0 })
        made.mapping.address.storeBytes(of: 0x1234, toByteOffset: Self.page, as: UInt32.self)
        #expect(seen.address.load(fromByteOffset: Self.page, as: UInt32.self) == 0x1234)
        calls.unmap(made.mapping)
        #expect(seen.address.load(fromByteOffset: Self.page, as: UInt32.self) == 0x1234)
        calls.unmap(seen)
    }

    /// Its maker may end and with it its maker's lock.
    @Test(arguments: InterprocessUnderTest.allCases)
    func whatIsMappedForReadingIsLockedHereToo(system: InterprocessUnderTest) throws {
        let calls = system.calls
        let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: false, locked: false)
        let descriptor = owned(made.descriptor)
        #expect(!(try Self.isLocked(made.mapping)))
        // Where this process may lock nothing, it works all the same.
        let other = try calls.makeSharedMemory(size: Self.page, writableByOthers: false, locked: true)
        try LinuxSystemCalls.shared.close(other.descriptor)
        calls.unmap(other.mapping)
        let seen = try calls.mapSharedMemory(descriptor.number, size: Self.page, writable: false)
        #expect(try Self.isLocked(seen) == other.isLocked)
        calls.unmap(seen)
        calls.unmap(made.mapping)
    }

    /// What the kernel says of a mapping (`VmFlags` in `/proc/self/smaps`).
    private static func isLocked(_ mapping: SharedMapping) throws -> Bool {
        let file = try #require(fopen("/proc/self/smaps", "r"))
        defer { fclose(file) }
        let start = String(UInt(bitPattern: mapping.address), radix: 16)
        var line = [CChar](repeating: 0, count: 4096)
        var isThere = false
        while fgets(&line, Int32(line.count), file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix("\(start)-") { isThere = true }
            if isThere, text.hasPrefix("VmFlags:") { return text.split(separator: " ").contains("lo") }
        }
        throw Unexpected()
    }

    /// Every way that a descriptor offers, also when it is opened anew and when our own mapping is gone.
    @Test(arguments: InterprocessUnderTest.allCases)
    func othersCanNeitherWriteNorResize(system: InterprocessUnderTest) throws {
        let calls = system.calls
        let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: false, locked: false)
        let descriptor = owned(made.descriptor)
        made.mapping.address.storeBytes(of: 0x77, as: UInt8.self)
        let again = owned(
            try LinuxSystemCalls.shared.open(
                FilePath(stringLiteral: "/proc/self/fd/\(descriptor.number)"), in: currentDirectory, [.read, .write],
                permissions: 0))
        let seen = try calls.mapSharedMemory(descriptor.number, size: Self.page, writable: false)
        for isOwnMapped in [true, false] {
            if !isOwnMapped { calls.unmap(made.mapping) }
            for number in [descriptor.number, again.number] {
                #expect(
                    errorNumber { _ = try calls.mapSharedMemory(number, size: Self.page, writable: true) } == EPERM)
                var byte: UInt8 = 1
                errno = 0
                #expect(pwrite(number, &byte, 1, 0) == -1 && errno == EPERM)
                for length in [0, 1, 2 * Self.page] {
                    #expect(ftruncate(number, length) == -1 && errno == EPERM)
                }
                #expect(
                    errorNumber {
                        try LinuxSystemCalls.shared.allocate(number, offset: 0, length: Int64(4 * Self.page))
                    } == EPERM)
                // A hole, and a seal more.
                #expect(
                    try Command.run(
                        "fallocate", ["--punch-hole", "--length", "4096", "/proc/self/fd/3"],
                        extraDescriptors: [number]
                    ).status != 0)
                #expect(fcntl(number, 1033, 0x8) == -1 && errno == EPERM)
            }
            #expect(mprotect(seen.address, seen.size, PROT_READ | PROT_WRITE) == -1 && errno == EACCES)
            #expect(seen.address.load(as: UInt8.self) == 0x77)
        }
        calls.unmap(seen)
    }

    @Test func whereOthersMayWriteTheyDoAndStillCannotResize() throws {
        let calls = LinuxInterprocessCalls.shared
        let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: true, locked: false)
        let descriptor = owned(made.descriptor)
        let other = try calls.mapSharedMemory(descriptor.number, size: Self.page, writable: true)
        other.address.storeBytes(of: 0x55, toByteOffset: 9, as: UInt8.self)
        #expect(made.mapping.address.load(fromByteOffset: 9, as: UInt8.self) == 0x55)
        for length in [0, 1, 2 * Self.page] {
            #expect(ftruncate(descriptor.number, length) == -1 && errno == EPERM)
        }
        #expect(fcntl(descriptor.number, 1033, 0x8) == -1 && errno == EPERM)
        calls.unmap(other)
        calls.unmap(made.mapping)
    }

    @Test func sizesAreWholePages() throws {
        let calls = LinuxInterprocessCalls.shared
        for (size, whole) in [(1, Self.page), (Self.page, Self.page), (Self.page + 1, 2 * Self.page)] {
            let made = try calls.makeSharedMemory(size: size, writableByOthers: false, locked: false)
            let descriptor = owned(made.descriptor)
            #expect(made.mapping.size == whole)
            #expect(try LinuxSystemCalls.shared.status(descriptor.number).size == Int64(whole))
            let seen = try calls.mapSharedMemory(descriptor.number, size: size, writable: false)
            #expect(seen.size == whole)
            calls.unmap(seen)
            calls.unmap(made.mapping)
        }
        for size in [0, -1, Int.min] {
            #expect(
                errorNumber { _ = try calls.makeSharedMemory(size: size, writableByOthers: false, locked: false) }
                    == EINVAL)
        }
        #expect(
            errorNumber { _ = try calls.makeSharedMemory(size: Int.max, writableByOthers: false, locked: false) }
                != nil)
    }

    @Test func memoryThatCouldEndUnderTheReaderIsRefused() throws {
        let calls = LinuxInterprocessCalls.shared
        let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: false, locked: false)
        let short = owned(made.descriptor)
        defer { calls.unmap(made.mapping) }
        for size in [Self.page + 1, 2 * Self.page, Int.max, 0, -1] {
            #expect(errorNumber { _ = try calls.mapSharedMemory(short.number, size: size, writable: false) } == EINVAL)
        }
        let directory = try TemporaryDirectory()
        try directory.write([UInt8](repeating: 1, count: Self.page), to: "file")
        let file = try LinuxSystemCalls.shared.openFile("file", in: directory.descriptor, [.read])
        #expect(errorNumber { _ = try calls.mapSharedMemory(file.number, size: 1, writable: false) } == EINVAL)
        #expect(errorNumber { _ = try calls.mapSharedMemory(1_000_000, size: 1, writable: false) } == EBADF)

        // Memory of another program: without seals, with all but the one against shrinking, with that one alone.
        let table: [(script: String, isTaken: Bool)] = [
            ("flags = 0; seals = 0", false), ("flags = 2; seals = 0", false), ("flags = 2; seals = 1 | 4 | 8", false),
            ("flags = 2; seals = 2", true),
        ]
        for row in table {
            let pair = try SocketPair()
            let script = """
                import fcntl
                \(row.script)
                m = os.memfd_create('m', flags)
                os.ftruncate(m, 65536)
                if seals: fcntl.fcntl(m, 1033, seals)
                socket.send_fds(s, [b'm'], [m])
                """
            let result = try python(script, socket: pair.far)
            try #require(result.status == 0, "\(result.errorText)")
            let memory = owned(try #require(try calls.receive(pair.near).packet.descriptors.first))
            let error = errorNumber {
                calls.unmap(try calls.mapSharedMemory(memory.number, size: 65536, writable: false))
            }
            #expect(error == (row.isTaken ? nil : EINVAL), "\(row.script)")
        }
    }

    @Test(arguments: [true, false]) func mappingsStayOutOfDumpsAndOfChildren(isLocked: Bool) throws {
        let calls = LinuxInterprocessCalls.shared
        let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: true, locked: isLocked)
        let descriptor = owned(made.descriptor)
        let seen = try calls.mapSharedMemory(descriptor.number, size: Self.page, writable: true)
        for mapping in [made.mapping, seen] {
            let flags = try kernelFlags(of: mapping)
            // Do not dump, do not copy.
            #expect(flags.contains("dd") && flags.contains("dc"), "\(flags)")
            let end = try ForkedChild.end {
                var resident: UInt8 = 0
                return mincore(mapping.address, mapping.size, &resident) == -1 && errno == ENOMEM
            }
            #expect(end == .success)
        }
        #expect(made.isLocked == isLocked)
        #expect(try kernelFlags(of: made.mapping).contains("lo") == isLocked)
        calls.unmap(seen)
        calls.unmap(made.mapping)
    }

    @Test func whereMemoryCannotBeLockedItIsMadeAndSaid() throws {
        let calls = LinuxInterprocessCalls.shared
        let end = try ForkedChild.end {
            var none = rlimit()
            // RLIMIT_MEMLOCK
            guard setrlimit(8, &none) == 0 else { return false }
            // The limit does not bind root.
            if geteuid() == 0 { guard setuid(65534) == 0 else { return false } }
            let made = try calls.makeSharedMemory(size: Self.page, writableByOthers: false, locked: true)
            made.mapping.address.storeBytes(of: 3, as: UInt8.self)
            return !made.isLocked && made.mapping.address.load(as: UInt8.self) == 3
        }
        #expect(end == .success)
    }

    /// The two-letter flags of the mapping in /proc/self/smaps.
    private func kernelFlags(of mapping: SharedMapping) throws -> [Substring] {
        let file = try LinuxSystemCalls.shared.openFile("/proc/self/smaps", [.read])
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65536)
        while true {
            let result = block.withUnsafeMutableBytes { buffer in
                Result { () throws(SystemError) in try LinuxSystemCalls.shared.read(file.number, into: buffer) }
            }
            let count = try result.get()
            if count == 0 { break }
            bytes += block.prefix(count)
        }
        let start = String(UInt(bitPattern: mapping.address), radix: 16) + "-"
        var isInside = false
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix(start) { isInside = true }
            if isInside, line.hasPrefix("VmFlags:") { return line.split(separator: " ") }
        }
        return []
    }
}
