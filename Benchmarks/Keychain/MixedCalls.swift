import Keychain
import KeychainModel

/// Calls of all kinds on items of one process, each of whose outcomes is known beforehand.
struct MixedCalls {
    private let service: any KeychainService
    private let name: String

    init(_ service: any KeychainService, process: Int) {
        self.service = service
        name = "mixed-\(process)"
    }

    /// Throws when a call ends otherwise than it must, or an item is lost.
    func run(_ count: Int) throws {
        var present: Set<Int> = []
        // A simple generator, so that every run is the same.
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        for _ in 0..<count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let number = Int(state >> 40) % 64
            let isThere = present.contains(number)
            switch Int(state >> 33) % 10 {
            case 0...3:
                try expect(isThere ? .duplicateItem : nil) { () throws(KeychainError) in
                    try service.call(.add(try KeychainBenchmark.item(number, service: name)))
                }
                present.insert(number)
            case 4...6:
                try expect(isThere ? nil : .itemNotFound) { () throws(KeychainError) in
                    var query = KeychainBenchmark.query(number, service: name)
                    query["r_Data"] = .boolean(true)
                    return try service.call(.find(query))
                }
            case 7...8:
                try expect(isThere ? nil : .itemNotFound) { () throws(KeychainError) in
                    try service.call(
                        .update(
                            KeychainBenchmark.query(number, service: name),
                            to: ["v_Data": .secret(try "another".itemSecret())]))
                }
            default:
                try expect(isThere ? nil : .itemNotFound) { () throws(KeychainError) in
                    try service.call(.delete(KeychainBenchmark.query(number, service: name)))
                }
                present.remove(number)
            }
        }
        var query: ItemDictionary = ["class": .text("genp"), "svce": .text(name)]
        query["m_Limit"] = .text("m_LimitAll")
        query["r_Attributes"] = .boolean(true)
        let left = try service.perform(.find(query)).results.count
        guard left == present.count else {
            throw KeychainError(.inputOutput, "\(left) items are left of \(present.count)")
        }
        try service.call(.delete(["class": .text("genp"), "svce": .text(name)]))
    }

    private func expect(
        _ code: KeychainError.Code?, _ body: () throws(KeychainError) -> KeychainAnswer
    ) throws {
        var caught: KeychainError?
        do throws(KeychainError) { _ = try body() } catch { caught = error }
        guard caught?.code == code else {
            throw KeychainError(.inputOutput, "a call ended with \(caught.map { "\($0)" } ?? "success")", cause: caught)
        }
    }
}

extension KeychainService {
    /// A request whose results are of no interest.
    @discardableResult
    func call(_ request: KeychainRequest) throws(KeychainError) -> KeychainAnswer {
        try perform(request) { (_) throws(KeychainError) in }
    }
}
