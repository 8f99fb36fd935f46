import Keybag
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// What other programs do to protected files: copies, moves, editors that save by renaming (field reports XA-01, XA-03,
/// FS-09).
@Suite struct WhichCopyToolTests {
    private func makeFile(_ fixture: FilesFixture, _ protectionClass: ProtectionClass = .complete) throws {
        try fixture.files.write(pattern(9000), to: fixture.path("file"), class: protectionClass)
    }

    @Test(arguments: ["cp file copy", "cat file > copy", "dd if=file of=copy status=none", "install -m 600 file copy"])
    func aCopyWithoutTheAttributeOpensBySayingSoAndIsMended(command: String) throws {
        let fixture = try FilesFixture()
        try makeFile(fixture)
        try fixture.shell(command)
        let copy = fixture.path("copy")
        #expect(try fixture.output("getfattr -d -m - copy") == "")
        // It is protected, not plain: by its class, in every state.
        #expect(try fixture.files.protectionClass(of: copy) == .complete)
        try fixture.lock()
        #expect(code { try fixture.files.contents(of: copy) } == .locked(.complete))
        #expect(code { try fixture.files.write([1], to: copy, class: ProtectionClass.none) } == .locked(.complete))
        try fixture.unlock()
        #expect(try fixture.files.open(copy, for: .reading).recordPlace == .header)
        #expect(try fixture.files.contents(of: copy) == pattern(9000))
        #expect(try fixture.files.repair(copy).mended == [.attribute])
        #expect(try fixture.files.open(copy, for: .reading).recordPlace == .both)
        // Protecting it again changes nothing.
        #expect(try fixture.convert(copy, .protect(.complete)).words == ["copy: unchanged complete"])
    }

    @Test(arguments: [
        "cp -a file copy", "cp --preserve=xattr file copy", "mv file copy", "ln file copy", "rsync -aX file copy",
        "mkdir sub; tar --xattrs -cf - file | tar --xattrs -xf - -C sub; mv sub/file copy",
    ])
    func aCopyWithTheAttributeIsAsGoodAsTheFile(command: String) throws {
        let fixture = try FilesFixture()
        try makeFile(fixture)
        try fixture.shell(command)
        #expect(try fixture.files.open(fixture.path("copy"), for: .reading).recordPlace == .both)
        #expect(try fixture.files.contents(of: fixture.path("copy")) == pattern(9000))
    }

    /// The name of a protected file, and content of an editor: the class says plain, and nobody takes it for protected.
    @Test(arguments: [
        "echo text > new; mv new file", "sed -i s/x/y/ file; rm file; echo text > file",
        "rm file; printf 'text\\n' > file",
    ])
    func aFileSavedByRenamingIsPlainAndSaysSo(command: String) throws {
        let fixture = try FilesFixture()
        try makeFile(fixture)
        try fixture.shell(command)
        let path = fixture.path("file")
        #expect(try fixture.files.protectionClass(of: path) == nil)
        #expect(code { try fixture.files.contents(of: path) } == .notProtected)
        #expect(code { try fixture.files.open(path, for: .updating) } == .notProtected)
        #expect(code { try fixture.files.repair(path) } == .notProtected)
        #expect(try FileInspection.inspect(path).state == .plain)
        #expect(try fixture.directory.read("files/file") == Array("text\n".utf8))
    }

    /// An editor that writes into the file leaves a key record over plain content: damage, not absence.
    @Test(arguments: [
        "echo text > file", ": > file",
        "truncate -s 100 file; dd if=/dev/zero of=file bs=100 count=1 conv=notrunc status=none",
    ])
    func aContainerThatWasWrittenOverIsDamagedAndIsNotReplaced(command: String) throws {
        let fixture = try FilesFixture()
        try makeFile(fixture)
        try fixture.shell(command)
        let path = fixture.path("file")
        let before = try fixture.directory.read("files/file")
        #expect(code { try fixture.files.contents(of: path) } == .damaged(.header))
        #expect(code { try fixture.files.write([1], to: path) } == .damaged(.header))
        #expect(code { try fixture.files.repair(path) } == .damaged(.header))
        #expect(code { try fixture.files.setProtectionClass(of: path, to: .none) } == .damaged(.header))
        #expect(try fixture.directory.read("files/file") == before)
    }

    /// A change of class keeps times; a rekey too, with owner and attributes.
    @Test func changesOfClassKeepTimesAndAttributes() throws {
        let fixture = try FilesFixture()
        try makeFile(fixture)
        try fixture.shell(
            "setfattr -n user.note -v kept file; chmod 640 file; touch -m -d '2001-02-03 04:05:06.987654321' file")
        let facts = "stat -c '%a %u %g %.Y' file; getfattr --only-values -n user.note file"
        let before = try fixture.output(facts)
        for (target, rekey) in [
            (ProtectionClass.none, false), (.completeUnlessOpen, false), (.complete, true), (.none, true),
        ] {
            _ = try fixture.files.setProtectionClass(of: fixture.path("file"), to: target, rekey: rekey)
            #expect(try fixture.output(facts) == before, "\(target), \(rekey)")
            let record = try FileInspection.inspect(fixture.path("file")).record
            #expect(record?.flags == (target == .completeUnlessOpen ? [.keyWasWeaker] : []), "\(target), \(rekey)")
        }
        #expect(try fixture.files.contents(of: fixture.path("file")) == pattern(9000))
    }
}
