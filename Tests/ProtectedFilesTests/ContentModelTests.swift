import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// Content through handles and whole files against plain arrays.
@Suite struct ContentModelTests {
    @Test(arguments: borderLengths)
    func wholeFilesComeBackAtEveryBorder(length: Int) throws {
        let fixture = try FilesFixture()
        let content = pattern(length)
        for protectionClass in ProtectionClass.allCases {
            let path = fixture.path(FilePath(protectionClass.name)!)
            try fixture.files.write(content, to: path, class: protectionClass)
            #expect(try fixture.files.contents(of: path) == content)
            let handle = try fixture.files.open(path, for: .reading)
            #expect(try handle.length == UInt64(length))
            #expect(try handle.allContent() == content)
            #expect(try handle.protectionClass == protectionClass)
            #expect(handle.recordPlace == .both)
        }
    }

    /// One random operation on a handle and on an array.
    private func step(_ random: inout DeterministicRandom, _ handle: ProtectedFile, _ model: inout [UInt8]) throws {
        let most = 400_000
        func place() -> Int {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: min(model.count, most)
            case 1: Int.random(in: 0..<90, using: &random) * 4096
            case 2: model.isEmpty ? 0 : Int.random(in: 0..<model.count, using: &random)
            default: Int.random(in: 0..<most, using: &random)
            }
        }
        func size() -> Int {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: Int.random(in: 1..<200, using: &random)
            case 1: 4096
            case 2: Int.random(in: 1..<20_000, using: &random)
            default: 4096 * Int.random(in: 1..<6, using: &random)
            }
        }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4:
            let offset = place()
            let bytes = pattern(size(), seed: random.next())
            try handle.write(bytes, at: offset)
            if offset > model.count { model += [UInt8](repeating: 0, count: offset - model.count) }
            let overlap = min(model.count - offset, bytes.count)
            model.replaceSubrange(offset..<(offset + overlap), with: bytes[..<overlap])
            model += bytes[overlap...]
        case 4:
            let bytes = pattern(size(), seed: random.next())
            let offset = try bytes.withUnsafeBytes { try handle.append($0) }
            #expect(offset == UInt64(model.count))
            model += bytes
        case 5:
            let length = place()
            try handle.truncate(to: UInt64(length))
            if length < model.count {
                model.removeSubrange(length...)
            } else {
                model += [UInt8](repeating: 0, count: length - model.count)
            }
        case 6: try handle.synchronize()
        default:
            let offset = place()
            let count = size()
            let expected = offset < model.count ? Array(model[offset..<min(model.count, offset + count)]) : []
            #expect(try handle.read(count, at: offset) == expected)
        }
    }

    @Test(arguments: 0..<Effort.share(12, long: 200))
    func handlesAgreeWithAModelThroughRandomOperationsAndReopening(seed: Int) throws {
        var random = DeterministicRandom(seed: UInt64(seed) + 1)
        let fixture = try FilesFixture()
        let path = fixture.path("model")
        var model: [UInt8] = []
        var handle = try fixture.files.open(path, for: .creating(.complete))
        for round in 0..<Effort.share(250, long: 5000) {
            try step(&random, handle, &model)
            if round % 25 == 24 {
                // Through another handle, with the log alive; through a fresh reading; after closing.
                #expect(try fixture.files.open(path, for: .reading).allContent() == model)
                if round % 50 == 49 { try handle.close() }
                handle = try fixture.files.open(path, for: .updating)
                #expect(try handle.length == UInt64(model.count))
            }
        }
        try handle.close()
        #expect(try fixture.files.contents(of: path) == model)
        let size = try LinuxSystemCalls.shared.status(of: path, in: currentDirectory, followLinks: false).size
        #expect(size == ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: UInt64(model.count))))
    }

    @Test(arguments: 0..<Effort.share(6, long: 60))
    func twoHandlesSeeEachOthersWritesAtOnce(seed: Int) throws {
        var random = DeterministicRandom(seed: UInt64(seed) + 100)
        let fixture = try FilesFixture()
        let path = fixture.path("shared")
        try fixture.files.write(pattern(10_000), to: path)
        var model = pattern(10_000)
        let handles = [
            try fixture.files.open(path, for: .updating), try fixture.files.open(path, for: .updating),
        ]
        let reader = try fixture.files.open(path, for: .reading)
        for _ in 0..<200 {
            try step(&random, handles[Int.random(in: 0..<2, using: &random)], &model)
            let offset = model.isEmpty ? 0 : Int.random(in: 0..<model.count, using: &random)
            let expected = Array(model[offset..<min(model.count, offset + 5000)])
            #expect(try reader.read(5000, at: offset) == expected)
            #expect(try reader.length == UInt64(model.count))
        }
        try handles[0].close()
        #expect(try handles[1].allContent() == model)
        try handles[1].close()
        #expect(try reader.allContent() == model)
    }
}
