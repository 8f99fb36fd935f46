import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// What a conversion keeps of a file, and which files it leaves alone.
@Suite struct TreeAttributeTests {
    /// All that `stat`, `getfacl` and `getfattr` (file capabilities are an attribute) tell, but for the inode, its change
    /// time and our own record.
    private func facts(_ fixture: FilesFixture) throws -> String {
        try fixture.output(
            """
            for f in $(ls -A); do
              stat -c '%n %a %u %g %X %Y %.Y %.X %h' "$f"
              [ -L "$f" ] || { getfacl -cn "$f"; getfattr -d -m - -e hex "$f" | grep -v 'candado\\|^# file' || true; }
            done
            """)
    }

    private static func difference(_ before: String, _ after: String) -> [String] {
        let before = before.split(separator: "\n"), after = after.split(separator: "\n")
        return after.difference(from: before).map { "\($0)" }
    }

    @Test(.enabled(if: geteuid() == 0, "changing owners needs root"))
    func everythingButTheContentStaysThroughBothWays() throws {
        for place in [TemporaryDirectory.Place.memory, .disk] {
            let fixture = try FilesFixture(place)
            try fixture.shell(
                """
                for mode in 0644 0600 0400 0200 0000 0755 4755 2755 6711 1644; do
                  echo "content of $mode" > m$mode; chmod $mode m$mode
                done
                echo owned > owned; chown 1234:4321 owned; chmod 4750 owned
                echo list > list; setfacl -m u:1234:rwx,g:99:r-x,m::r-x list
                echo attributes > attributes
                setfattr -n user.one -v first attributes; setfattr -n user.two -v 0x00ff00 attributes
                setfattr -n trusted.three -v third attributes
                cp /bin/true capable; chmod 755 capable; 
                if command -v setcap > /dev/null; then setcap cap_net_raw+ep capable; fi
                : > empty; head -c 4096 /dev/zero > zeros
                for f in *; do touch -a -d '2001-02-03 04:05:06.123456789' $f; touch -m -d '1999-01-02 03:04:05.987654321' $f; done
                """)
            // Reading changes the times of access: the content is compared last.
            let before = try facts(fixture)
            try fixture.shell("mkdir ../kept; cp -p * ../kept")
            try fixture.shell("for f in *; do touch -a -d '2001-02-03 04:05:06.123456789' $f; done")
            let forward = try fixture.convert(fixture.path("."), .protect(.complete))
            #expect(forward.count("changed") == 16, "\(forward.words)")
            let difference = Self.difference(before, try facts(fixture))
            #expect(difference == [], "\(difference.prefix(4))")
            let back = try fixture.convert(fixture.path("."), .unprotect)
            #expect(back.count("changed") == 16, "\(back.words)")
            let remaining = Self.difference(before, try facts(fixture))
            #expect(remaining == [], "\(remaining.prefix(4))")
            try fixture.shell("diff -r . ../kept")
            #expect(try fixture.output("getfattr -d -m user.candado . $(ls)") == "")
        }
    }

    /// An attribute of the same name that lay on the plain file is no part of what is kept.
    @Test func theOldRecordIsNotCopied() throws {
        let fixture = try FilesFixture()
        try fixture.files.write(pattern(100), to: fixture.path("donor"), class: ProtectionClass.none)
        try fixture.shell("echo plain > victim")
        // A directory's record on a plain file is damage, and says so.
        try fixture.shell("setfattr -n user.candado -v 0x3141 victim")
        #expect(try fixture.convert(fixture.path("victim"), .protect(.complete)).codes == [.damaged(.record)])
        #expect(try fixture.directory.read("files/victim") == Array("plain\n".utf8))
        let protected = try fixture.convert(fixture.path("donor"), .unprotect)
        #expect(protected.count("changed") == 1)
        #expect(try fixture.output("getfattr -d -m - donor") == "")
    }

    @Test func linksAndSpecialFilesAreSkippedAndHardLinksRefused() throws {
        let fixture = try FilesFixture()
        try fixture.shell(
            """
            echo target > target; ln -s target link; ln -s . loop; ln -s nowhere dangling; mkfifo pipe
            python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
            echo linked > first; ln first second
            """)
        let outcomes = try fixture.convert(fixture.path("."), .protect(.complete))
        #expect(
            outcomes.words == [
                "dangling: skipped, a symbolic link",
                "first: failed, the file has 2 hard links; converting it would part them",
                "link: skipped, a symbolic link", "loop: skipped, a symbolic link",
                "pipe: skipped, a device, a socket or a pipe",
                "second: failed, the file has 2 hard links; converting it would part them",
                "socket: skipped, a device, a socket or a pipe", "target: changed",
            ])
        #expect(
            try fixture.output("readlink link loop dangling; cat first; stat -c %h second")
                == "target\n.\nnowhere\nlinked\n2\n")
        #expect(
            try fixture.convert(fixture.path("link"), .protect(.complete)).words == ["link: skipped, a symbolic link"])
    }

    @Test func namesOfEveryKindAreConverted() throws {
        let fixture = try FilesFixture()
        let names: [[UInt8]] = [
            Array("new\nline".utf8), [0xFF, 0xFE, 0x80], Array("-rf".utf8), Array("--".utf8), Array(" ".utf8),
            Array("*".utf8), [1, 2, 127], [UInt8](repeating: UInt8(ascii: "n"), count: 255),
            Array("naïve ☃".utf8), Array(".hidden".utf8), Array("..".utf8) + [0x2E],
        ]
        for name in names { try fixture.directory.write(name, to: FilePath("files").appending(FilePath(bytes: name)!)) }
        try fixture.directory.makeDirectory(FilePath("files").appending(FilePath(bytes: [0xC0, 0x0A])!))
        let outcomes = try fixture.convert(fixture.path("."), .protect(.complete))
        #expect(outcomes.count("changed") == names.count, "\(outcomes.words)")
        for name in names {
            #expect(try fixture.files.contents(of: fixture.path(FilePath(bytes: name)!)) == name)
        }
        #expect(try fixture.convert(fixture.path("."), .unprotect).count("changed") == names.count)
        for name in names {
            #expect(try fixture.directory.read(FilePath("files").appending(FilePath(bytes: name)!)) == name)
        }
    }

    @Test(.enabled(if: geteuid() == 0 && Command.exists("setpriv"), "needs root, to be somebody else"))
    func whatCannotBeReadOrKeptIsSaidAndStays() throws {
        // As root the intercepted calls answer what an ordinary user would be told.
        let fixture = try FilesFixture()
        try fixture.shell("echo secret > unreadable; chmod 0 unreadable; echo other > other; echo fine > fine")
        let system = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.operation == .open, call.path == "unreadable" { throw call.failure(EACCES) }
            return .proceed
        }
        let outcomes = try fixture.convert(fixture.path("."), .protect(.complete), system: system)
        #expect(outcomes.codes == [.system(EACCES)])
        #expect(outcomes.count("changed") == 2)
        #expect(try fixture.directory.read("files/unreadable") == Array("secret\n".utf8))
        // Somebody else's file: the new one cannot be given to its owner.
        try fixture.shell("echo owned > owned; chown 1234 owned")
        let refusing = InterceptedSystemCalls(LinuxSystemCalls.shared) { call throws(SystemError) in
            if call.operation == .changeOwner { throw call.failure(EPERM) }
            return .proceed
        }
        let refused = try fixture.convert(fixture.path("owned"), .protect(.complete), system: refusing)
        #expect(refused.codes == [.system(EPERM)])
        #expect(try fixture.directory.read("files/owned") == Array("owned\n".utf8))
        #expect(try fixture.names().filter { $0.hasPrefix(".candado") } == [])
    }
}
