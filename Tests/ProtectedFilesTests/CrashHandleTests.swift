import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// The crash rule for writes through a handle: power cut at every point, each image read, written to and cut again.
@Suite struct CrashHandleTests {
    struct Script: Sendable, CustomTestStringConvertible {
        let name: String
        let length: Int
        let steps: [CrashStep]
        var testDescription: String { name }
    }

    static let chunk = 4096
    static let group = 76 * chunk

    static let scripts: [Script] = [
        Script(name: "overwrite", length: 10_000, steps: [.write(at: 100, count: 50), .reopen]),
        Script(
            name: "overwrites without sync", length: 12_288,
            steps: [.write(at: 0, count: 4096), .write(at: 4000, count: 200), .write(at: 0, count: 10), .reopen]),
        Script(
            name: "overwrites with syncs", length: 10_000,
            steps: [
                .write(at: 5000, count: 100), .synchronize, .write(at: 5050, count: 100), .write(at: 0, count: 9000),
                .synchronize, .write(at: 1, count: 1), .reopen,
            ]),
        Script(name: "small append", length: 100, steps: [.append(50), .synchronize, .append(60), .reopen]),
        Script(
            name: "appends over chunk borders", length: 4000,
            steps: [.append(200), .append(9000), .synchronize, .append(4096), .append(100), .reopen]),
        Script(
            name: "appends over a group's border", length: group - 5000,
            steps: [.append(4000), .append(9000), .synchronize, .append(5000), .reopen]),
        Script(
            name: "append to an empty file", length: 0, steps: [.append(1), .append(8192), .synchronize, .append(1)]),
        Script(
            name: "shrink inside a chunk", length: 12_000,
            steps: [.truncate(5000), .synchronize, .truncate(10), .reopen]),
        Script(
            name: "shrink to a chunk's border", length: 12_288,
            steps: [.truncate(8192), .synchronize, .truncate(4096), .reopen, .truncate(0), .reopen]),
        Script(
            name: "grow by truncation", length: 100, steps: [.truncate(4096), .truncate(20_000), .synchronize, .reopen]),
        Script(
            name: "shrink, then grow", length: 20_000,
            steps: [.truncate(4096), .append(6000), .synchronize, .truncate(100), .truncate(9000), .reopen]),
        Script(
            name: "shrink, close, then append", length: 20_480,
            steps: [.truncate(8192), .reopen, .append(4096), .append(4096), .synchronize, .append(10)]),
        Script(
            name: "grow unsynced, shrink, grow", length: 8192,
            steps: [.append(8192), .truncate(8192), .append(8192), .truncate(4096), .append(5000), .reopen]),
        Script(
            name: "shrink and grow in one log", length: 16_384,
            steps: [.write(at: 9000, count: 10), .truncate(4096), .synchronize, .write(at: 4096, count: 4096), .reopen]),
        Script(
            name: "write behind the end", length: 5000,
            steps: [.write(at: 9000, count: 100), .synchronize, .write(at: 20_000, count: 1), .reopen]),
        Script(
            name: "several logs", length: 12_288,
            steps: [
                .write(at: 0, count: 10), .reopen, .write(at: 5000, count: 10), .reopen, .append(10),
                .write(at: 0, count: 9000), .reopen,
            ]),
    ]

    /// Two handles, steps by chance: what nobody thought of.
    static let randomScripts = (0..<Effort.share(8, long: 300)).map { seed in
        let length = [0, 3000, 12_288, 20_000][seed % 4]
        return Script(
            name: "random steps \(seed)", length: length,
            steps: CrashStep.random(8, seed: UInt64(seed), length: length))
    }

    @Test(arguments: scripts + randomScripts)
    func everyImageHasTheContentOfOneStep(script: Script) throws {
        let fixture = try FilesFixture()
        let content = pattern(script.length)
        try CrashBystander.make(in: fixture)
        try fixture.files.write(content, to: fixture.path(CrashScript.name), class: .complete)
        let run = try CrashScript(fixture.keybag, in: fixture.directory.appending("files"), content: content)
        try run.run(script.steps)
        let (report, inner) = try run.check(script.name, nestingEvery: Effort.share(29, long: 7))
        #expect(report.violationCount == 0, "\(script.steps) \(report)")
        if !script.name.hasPrefix("random") {
            #expect(report.imageCount > 20)
            #expect(inner > 0 || report.imageCount < 29)
        }
    }
}
