import LinuxSystem
import TestSupport
import Testing

@Suite struct ServiceManagerUnitsTests {
    private typealias Unit = [String: [String: [String]]]

    @Test func theSocketUnitListensWhereClientsLook() throws {
        let socket = try unit("candado-agent.socket")["Socket"] ?? [:]
        #expect(socket["ListenSequentialPacket"] == ["%t/candado/agent.sock"])
        #expect(socket["SocketMode"] == ["0600"])
        #expect(socket["DirectoryMode"] == ["0700"])
        // One agent for all clients.
        #expect(socket["Accept"] == nil)
    }

    @Test func theServiceUnitGivesWhatTheAgentReliesOn() throws {
        let unit = try unit("candado-agent.service")
        let service = unit["Service"] ?? [:]
        #expect(unit["Unit"]?["Requires"] == ["candado-agent.socket"])
        let expected = [
            "Type": "notify", "ExecStart": "/usr/local/bin/candado-agent", "KillSignal": "SIGTERM", "LimitCORE": "0",
            "UMask": "0077", "NoNewPrivileges": "yes", "RestrictAddressFamilies": "AF_UNIX",
        ]
        for (key, value) in expected { #expect(service[key] == [value], "\(key)") }
        let stop = Int(service["TimeoutStopSec"]?.first ?? "")
        #expect(stop.map { $0 > 0 && $0 <= 30 } == true)
        let locked = service["LimitMEMLOCK"]?.first
        #expect(locked?.hasSuffix("M") == true && Int(locked?.dropLast() ?? "").map { $0 >= 8 } == true)
    }

    /// A user namespace would show every peer's user as nobody; a filter of calls answers with the wrong error; a new agent
    /// after a crash would have no keys; a namespace for files needs the privilege that a user manager lacks.
    @Test func theServiceUnitHasNothingThatBreaksTheAgent() throws {
        let service = try unit("candado-agent.service")["Service"] ?? [:]
        let breaking = ["Private", "Protect", "ReadOnly", "Inaccessible", "SystemCallFilter", "Root", "Dynamic"]
        for key in service.keys {
            #expect(key != "Restart" && !breaking.contains { key.hasPrefix($0) }, "\(key)")
        }
    }

    @Test func theUnitsAreInstalledTogether() throws {
        #expect(try unit("candado-agent.socket")["Install"]?["WantedBy"] == ["sockets.target"])
        #expect(try unit("candado-agent.service")["Install"]?["Also"] == ["candado-agent.socket"])
    }

    /// systemd's own opinion, where it is at hand: it knows every key and every value.
    @Test(.enabled(if: Command.exists("systemd-analyze")))
    func systemdFindsNothingWrong() throws {
        let directory = try TemporaryDirectory()
        for name in ["candado-agent.socket", "candado-agent.service"] {
            let text = try text(name).replacing("/usr/local/bin/candado-agent", with: "/bin/true")
            try directory.write(Array(text.utf8), to: FilePath(name) ?? "unit", permissions: 0o644)
        }
        let result = try Command.run(
            "systemd-analyze",
            ["--user", "--man=no", "verify", "candado-agent.socket", "candado-agent.service"],
            environment: ["PATH=/usr/bin:/bin", "XDG_RUNTIME_DIR=\(directory.path)", "HOME=\(directory.path)"],
            directory: directory.path)
        #expect(result.status == 0)
        #expect(result.errorText == "")
    }

    private func text(_ name: String) throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        let path = try #require(FilePath("\(root)/units/\(name)"))
        let bytes = try SafeFile.read(
            path, in: currentDirectory, maximumSize: 65536, ownerOnly: false, LinuxSystemCalls.shared)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Sections, keys, values in order.
    private func unit(_ name: String) throws -> Unit {
        var unit: Unit = [:]
        var section = ""
        for line in try text(name).split(separator: "\n") where !line.hasPrefix("#") {
            if line.hasPrefix("["), line.hasSuffix("]") {
                section = String(line.dropFirst().dropLast())
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            try #require(parts.count == 2, "\(name): \(line)")
            unit[section, default: [:]][String(parts[0]), default: []].append(String(parts[1]))
        }
        return unit
    }
}
