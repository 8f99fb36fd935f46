import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSystem

@Suite struct RecordingThreadsTests {
    @Test func changesOfSeveralThreadsAreAllWrittenDown() throws {
        let directory = try TemporaryDirectory(.memory)
        let recording = try RecordingCalls(of: directory.path)
        let system = recording.system
        let top = directory.descriptor
        WorkerThreads.run(4) { worker in
            for round in 0..<50 {
                let temporary = FilePath("t\(worker)-\(round)") ?? "."
                let final = FilePath("f\(worker)-\(round)") ?? "."
                do {
                    let file = try system.openFile(temporary, in: top, [.write, .create, .exclusive])
                    try system.write([UInt8(worker), UInt8(round)], to: file.number, at: 0)
                    try system.rename(temporary, in: top, to: final, in: top, replacing: .forbidden)
                } catch { Issue.record("\(error)") }
            }
        }
        recording.mark("end")
        #expect(recording.problems.isEmpty)
        // Four changes a file: made, named, written, renamed.
        #expect(recording.operations.count == 4 * 50 * 4)
        let names = try directory.names()
        var complete = 0
        _ = try PowerCut(recording, .init(imagesPerPrefix: 2, models: [.orderedNames])).check("threads") { image in
            guard image.has("end"), try image.directory.names() == names else { return }
            for name in names {
                let bytes = try image.directory.read(FilePath(name) ?? "")
                if bytes.count == 2, name == "f\(bytes[0])-\(bytes[1])" { complete += 1 }
            }
        }
        #expect(complete == names.count)
    }

    /// A write that another thread makes while a synchronisation runs is not covered by it.
    @Test func aSynchronisationCoversOnlyWhatWasThereWhenItBegan() throws {
        let directory = try TemporaryDirectory(.memory)
        try directory.write([1], to: "file")
        let holder = Mutex<(any SystemCalls)?>(nil)
        let base = InterceptedSystemCalls(
            LinuxSystemCalls.shared,
            intercept: { (call) throws(SystemError) in
                guard call.operation == .synchronize, let descriptor = call.descriptor else { return .proceed }
                let system = holder.withLock { $0 }
                WorkerThreads.run(2) { number in
                    if number == 1 { try? system?.write([9], to: descriptor, at: 0) }
                }
                return .proceed
            })
        let recording = try RecordingCalls(of: directory.path, base)
        holder.withLock { $0 = recording.system }
        let file = try recording.system.openFile("file", in: directory.descriptor, [.write])
        try recording.system.write([5], to: file.number, at: 0)
        try recording.system.synchronize(file.number, dataOnly: false)
        recording.mark("synchronised")
        holder.withLock { $0 = nil }
        #expect(recording.operations.count == 3)
        var contents: Set<[UInt8]> = []
        _ = try PowerCut(recording).check("write during fsync") { image in
            if image.has("synchronised") { contents.insert(try image.directory.read("file")) }
        }
        #expect(contents == [[5], [9]])
    }
}
