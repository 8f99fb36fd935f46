import KeychainModel
import TestSupport
import Testing

@testable import KeychainStore

@Suite struct SealedAttributesTests {
    static let samples: [ItemDictionary] = [
        [:],
        ["acct": .text("name"), "svce": .text(""), "gena": .data([0, 255])],
        ["port": .number(.min), "crtr": .number(.max), "cdat": .date(-1.5), "x": .real(.nan), "y": .real(-0.0)],
        ["invi": .boolean(true), "nega": .boolean(false), "n": .null, "text": .text("a\0é\u{301}🔒")],
        ["list": .list([.text("a"), .list([]), .dictionary(["k": .list([.number(1)])])]), "empty": .dictionary([:])],
    ]

    private func decoded(_ bytes: [UInt8]) -> ItemDictionary? { bytes.withUnsafeBytes { SealedAttributes.decode($0) } }

    @Test(arguments: samples.indices)
    func whatIsWrittenReadsBack(index: Int) throws {
        let sample = Self.samples[index]
        let bytes = try SealedAttributes.encode(sample)
        let read = try #require(decoded(bytes))
        #expect("\(read.sorted { $0.key < $1.key })" == "\(sample.sorted { $0.key < $1.key })")
        #expect(try SealedAttributes.encode(read) == bytes)
    }

    @Test func accessControlReadsBack() throws {
        for accessibility in Accessibility.allCases {
            let control = try AccessControl(accessibility, [.userPresence, .privateKeyUsage])
            let read = decoded(try SealedAttributes.encode(["accc": .accessControl(control)]))
            guard case .accessControl(let back)? = read?["accc"] else {
                Issue.record("\(accessibility)")
                continue
            }
            #expect(back == control)
        }
    }

    /// Whatever is read encodes to the same bytes: no dictionary has two forms.
    @Test func everyChangedByteIsRefusedOrAnotherDictionary() throws {
        for sample in Self.samples {
            let bytes = try SealedAttributes.encode(sample)
            for place in bytes.indices {
                for change in [1, 0x80, 0xFF] as [UInt8] {
                    var changed = bytes
                    changed[place] ^= change
                    guard let read = decoded(changed) else { continue }
                    #expect(try SealedAttributes.encode(read) == changed)
                }
            }
            for count in 0..<bytes.count { #expect(decoded(Array(bytes.prefix(count))) == nil) }
            #expect(decoded(bytes + [0]) == nil)
        }
    }

    @Test func keysOutOfOrderTwiceOrEqualToUnicodeAreRefused() throws {
        func entry(_ key: String) throws -> [UInt8] {
            Array(try SealedAttributes.encode([key: .null]).dropFirst(4))
        }
        let two: [UInt8] = [0, 0, 0, 2]
        #expect(decoded(two + (try entry("a")) + (try entry("b"))) != nil)
        #expect(decoded(two + (try entry("b")) + (try entry("a"))) == nil)
        #expect(decoded(two + (try entry("a")) + (try entry("a"))) == nil)
        #expect(decoded(two + (try entry("e\u{301}")) + (try entry("\u{E9}"))) == nil)
    }

    @Test func whatIsNoAttributeIsRefused() {
        #expect(keychainCode { try SealedAttributes.encode(["v_Data": .secret(ItemSecret())]) } == .malformed)
        #expect(keychainCode { try SealedAttributes.encode(["x": .foreign("NSObject")]) } == .malformed)
        var deep = ItemValue.null
        for _ in 0...SealedAttributes.maximumDepth { deep = .list([deep]) }
        #expect(keychainCode { try SealedAttributes.encode(["x": deep]) } == .malformed)
        let large = ItemValue.data(Array(repeating: 0, count: SealedAttributes.maximumSize))
        #expect(keychainCode { try SealedAttributes.encode(["x": large]) } == .malformed)
    }
}
