import Glibc
import LinuxSystem
import ProtectionModel
import TestSupport
import Testing

@testable import ProtectedFiles

/// Every length at which a container can be cut, and every byte that can be spoiled. By default every byte and length
/// within the headers and the seals in use, and a part of the others; with CANDADO_LONG all of them, in all classes.
@Suite struct DamageWalkTests {
    static let isLong = getenv("CANDADO_LONG") != nil
    static let classes: [ProtectionClass] = isLong ? ProtectionClass.allCases : [.complete]

    /// The places to visit: all that matter most, and every 97th of the rest.
    private func share(of places: [Int], _ sample: DamageSample) -> [Int] {
        guard !Self.isLong else { return places }
        let borders = [1024 + 80, 4096, 8192, sample.logOffset, sample.original.count]
        return places.filter { place in
            place % 97 == 0 || (place < 1024 + 90 && (place < 300 || place % 5 == 0 || place % 512 < 130))
                || borders.contains { abs($0 - place) < 3 }
                || (sample.logOffset..<sample.logOffset + 140).contains(place)
        }
    }

    /// Bytes whose value says "needs a newer version" when a higher bit is set in them: version and features of both
    /// slots, version, class and flags of the copied record.
    private static func mayNeedNewerVersion(_ index: Int) -> Bool {
        index < 1024 && [8, 9, 12, 13, 14, 15, 64, 65, 66].contains(index % 512)
    }

    /// What may come of a spoiled byte of a container.
    private func isRight(_ result: DamageSample.Result, flipped index: Int, _ sample: DamageSample) -> Bool {
        let chunks = (sample.content.count + 4095) / 4096
        switch index {
        case ..<1024:
            // The other slot stands in.
            if result == .error(.needsNewerVersion) { return Self.mayNeedNewerVersion(index) }
            return result == .identical || !sample.earlier.isEmpty && result == .earlier
        case ..<(1024 + 40 * chunks): return result == .error(.damaged(.chunk)) || isInLog(result, sample)
        case ..<4096: return result == .identical
        case ..<(4096 + 4096 * chunks): return result == .error(.damaged(.chunk)) || isInLog(result, sample)
        default:
            // Behind the content there is nothing, or the log: a torn log ends at what is spoiled.
            return result == .identical || !sample.earlier.isEmpty && result == .earlier
        }
    }

    /// A chunk whose newest form is in the log does not need its place.
    private func isInLog(_ result: DamageSample.Result, _ sample: DamageSample) -> Bool {
        sample.logOffset > 0 && result == .identical
    }

    @Test(arguments: DamageSample.Kind.allCases, classes)
    func aSpoiledByteIsMendedOrNamedByItsLayer(kind: DamageSample.Kind, protectionClass: ProtectionClass) throws {
        let sample = try DamageSample(kind, protectionClass)
        var map = DamageMap()
        for index in share(of: sample.interestingBytes, sample) {
            let byte = sample.original[index]
            try sample.put([byte ^ (1 << UInt8(index % 8))], at: index)
            let result = sample.outcome()
            if !isRight(result, flipped: index, sample) { map.add(index, result) }
            try sample.put([byte], at: index)
        }
        #expect(map.lines == [])
        #expect(sample.outcome() == .identical)
    }

    /// All eight bits of each byte of header and record, where a single bit decides what the byte means.
    @Test func everyBitOfTheHeadersAndOfTheAttributeIsMendedOrNamed() throws {
        let sample = try DamageSample(.twoChunks, .complete)
        for index in 0..<1024 where Self.isLong || index % 512 < 130 || index % 512 > 470 {
            for bit in 0..<8 {
                try sample.put([sample.original[index] ^ (1 << UInt8(bit))], at: index)
                let result = sample.outcome()
                #expect(isRight(result, flipped: index, sample), "byte \(index), bit \(bit): \(result)")
            }
            try sample.put([sample.original[index]], at: index)
        }
        for protectionClass in ProtectionClass.allCases {
            let sample = try DamageSample(.oneByte, protectionClass)
            for index in sample.attribute.indices {
                for bit in 0..<8 where Self.isLong || index < 4 || bit == index % 8 {
                    var bytes = sample.attribute
                    bytes[index] ^= 1 << UInt8(bit)
                    try sample.setAttribute(bytes)
                    let result = sample.outcome()
                    let isNewer = result == .error(.needsNewerVersion) && index < 3
                    #expect(result == .identical || isNewer, "\(protectionClass), byte \(index), bit \(bit): \(result)")
                }
            }
            for length in 0..<sample.attribute.count {
                try sample.setAttribute(Array(sample.attribute[..<length]))
                #expect(sample.outcome() == .identical, "\(protectionClass), attribute cut at \(length)")
            }
        }
    }

    @Test(arguments: DamageSample.Kind.allCases, classes)
    func aCutIsNamedByItsLayerAndNeverShortensTheContent(kind: DamageSample.Kind, protectionClass: ProtectionClass)
        throws
    {
        let sample = try DamageSample(kind, protectionClass)
        let end = Int(
            ContainerGeometry.size(chunks: ContainerGeometry.chunkCount(length: UInt64(sample.content.count))))
        var map = DamageMap()
        for length in share(of: sample.interestingBytes, sample).reversed() {
            try sample.cut(at: length)
            let result = sample.outcome()
            let isRight =
                switch length {
                case ..<1024: result == .error(.damaged(.header))
                case ..<end where !sample.content.isEmpty && sample.logOffset == 0: result == .error(.damaged(.chunk))
                // Behind the content, or in the log: what is left of the log counts.
                default:
                    result == .identical || result == .earlier
                        || sample.logOffset > 0 && length < 4096 * 4 && result == .error(.damaged(.chunk))
                }
            if !isRight { map.add(length, result) }
            try sample.restore(from: length)
        }
        #expect(map.lines == [])
        #expect(sample.outcome() == .identical)
    }

    /// With the attribute gone as well, the two slots are all there is.
    @Test func oneSlotIsEnoughWithoutTheAttribute() throws {
        for kind in DamageSample.Kind.allCases {
            let sample = try DamageSample(kind, .completeUntilFirstUserAuthentication)
            try LinuxSystemCalls.shared.removeAttribute(KeyRecord.attributeName, of: sample.file.number)
            // Not the magic, the versions and the features: those make the slot something else than damaged.
            for place in [20, 30, 70, 90, 110, 200, 480, 500] {
                for slot in 0..<2 {
                    let index = slot * 512 + place
                    try sample.put([sample.original[index] ^ 0x10], at: index)
                    let result = sample.outcome()
                    #expect(
                        result == .identical || result == .earlier, "\(kind), slot \(slot), byte \(place): \(result)")
                    try sample.put([sample.original[index]], at: index)
                }
            }
        }
    }

    @Test func damageInBothSlotsIsNamed() throws {
        for kind in DamageSample.Kind.allCases {
            let sample = try DamageSample(kind, .complete)
            for place in [0, 5, 16, 30, 70, 90, 200, 480, 511] {
                for slot in 0..<2 {
                    try sample.put([sample.original[slot * 512 + place] ^ 0x10], at: slot * 512 + place)
                }
                #expect(sample.outcome() == .error(.damaged(.header)), "\(kind), byte \(place)")
                for slot in 0..<2 { try sample.put([sample.original[slot * 512 + place]], at: slot * 512 + place) }
            }
        }
    }
}
