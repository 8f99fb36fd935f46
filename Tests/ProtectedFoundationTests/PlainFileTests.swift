import TestSupport
import Testing

@testable import ProtectedFoundation

/// Every call on plain files in unprotected places, beside Foundation's own.
@Suite struct PlainFileTests {
    @Test(arguments: PlainScene.all)
    func callsDoOnPlainFilesWhatFoundationsDo(_ scene: PlainScene) throws {
        #expect(WholeFileCall.ofOurs.map(\.description) == WholeFileCall.ofFoundation.map(\.description))
        for (ours, foundations) in zip(WholeFileCall.ofOurs, WholeFileCall.ofFoundation)
        where ours.demands == nil || ours.demands == scene.description || scene.isNoFile {
            let (first, second) = (try TemporaryDirectory(.memory), try TemporaryDirectory(.memory))
            // No keys at all: a plain file needs none.
            let outcome = try Outcome(of: ours, on: scene, in: URL(fileURLWithPath: first.path.description))
            let expected = try Outcome(of: foundations, on: scene, in: URL(fileURLWithPath: second.path.description))
            #expect(outcome == expected, "\(ours) on \(scene)")
        }
    }

    @Test func bothTablesHaveTheSameSource() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let texts = try ["Foundation", "Ours"].map { name in
            try String(contentsOf: folder.appendingPathComponent("WholeFileCalls+\(name).swift"), encoding: .utf8)
                .replacingOccurrences(of: "import ProtectedFoundation", with: "import Foundation")
                .replacingOccurrences(of: "ofOurs", with: "ofFoundation")
        }
        #expect(texts[0] == texts[1])
    }
}
