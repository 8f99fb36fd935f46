import Testing

@testable import SecretMemory

@Suite struct SecretBytesThreadTests {
    @Test func threadsDoNotGetEachOthersSlots() async {
        await #expect(processExitsWith: .success) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 1...8 {
                    group.addTask {
                        let mark = UInt8(task)
                        for round in 0..<2000 {
                            let count = [1, 32, 33, 100, 4096][round % 5]
                            var bytes = try SecretBytes(count: count)
                            let zero = bytes.isAllZero
                            bytes.withUnsafeMutableBytes { _ = $0.initializeMemory(as: UInt8.self, repeating: mark) }
                            let second = try bytes.copy()
                            let intact = bytes.withUnsafeBytes { $0.allSatisfy { $0 == mark } }
                            let same = second.equals(bytes)
                            if !zero || !intact || !same {
                                Issue.record("task \(task), round \(round): \(zero) \(intact) \(same)")
                                return
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(SecretMemory.slotsInUse == 0)
        }
    }
}
