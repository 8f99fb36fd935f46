import LinuxSystem
import Testing

@testable import AgentProtocol

@Suite struct AgentNoteTests {
    private static let text = "candado-agent 1\nprocess 4711\nsocket /run/user/1000/candado/agent.sock\n"

    @Test func theExampleOfItsPageIsWhatIsWritten() {
        let note = AgentNote(process: 4711, socket: "/run/user/1000/candado/agent.sock")
        #expect(note.encoded == Array(Self.text.utf8))
        #expect(AgentNote(decoding: note.encoded) == note)
    }

    @Test func anyPathIsKept() throws {
        for bytes in [[0x2F], Array("/a\nb\n".utf8), [0x2F, 0xFF, 0x20]] as [[UInt8]] {
            let note = AgentNote(process: .max, socket: try #require(FilePath(bytes: bytes)))
            #expect(AgentNote(decoding: note.encoded) == note)
        }
    }

    @Test(arguments: [
        "", "candado-agent 1\n", "candado-agent 2\nprocess 4711\nsocket /s\n",
        "candado-agent 1\nprocess 0\nsocket /s\n",
        "candado-agent 1\nprocess 04711\nsocket /s\n", "candado-agent 1\nprocess +1\nsocket /s\n",
        "candado-agent 1\nprocess 4711\nsocket s\n", "candado-agent 1\nprocess 4711\nsocket /s",
        "candado-agent 1\nprocess 99999999999\nsocket /s\n", "candado-agent 1\nsocket /s\nprocess 4711\n",
        "candado-agent 1\nprocess 4711\nsocket \n",
    ])
    func whatIsNotANoteIsNone(text: String) { #expect(AgentNote(decoding: Array(text.utf8)) == nil) }

    @Test func everyCutIsNoNote() {
        let whole = Array(Self.text.utf8)
        for count in whole.indices { #expect(AgentNote(decoding: Array(whole[..<count])) == nil) }
    }
}
