/// How much of a write the disk has after a power cut. A sector of 512 bytes, aligned, is whole: old or new.
enum Persistence: Hashable, Sendable, CaseIterable {
    case none
    case all
    case firstHalf
    case lastHalf
    case evenSectors
    case oddSectors
    case firstSector
    case lastSector
    /// The file grew, and reads as zeros where nothing was written.
    case sizeOnly
    /// The file grew, and only the first half of what was written is there.
    case firstHalfFullSize

    static let sectorSize = 512

    /// Those that differ for a write of so many bytes at this place.
    static func possibilities(offset: Int, count: Int, extends: Bool) -> [Persistence] {
        let sectors = sectorCount(offset: offset, count: count)
        var some: [Persistence] = [.none, .all]
        if sectors >= 2 { some += [.firstHalf, .lastHalf] }
        if sectors >= 3 { some += [.evenSectors, .oddSectors, .firstSector, .lastSector] }
        if extends {
            some.append(.sizeOnly)
            if sectors >= 2 { some.append(.firstHalfFullSize) }
        }
        return some
    }

    static func sectorCount(offset: Int, count: Int) -> Int {
        count == 0 ? 0 : (offset + count - 1) / sectorSize - offset / sectorSize + 1
    }

    /// Whether the sector, counted from the first that the write touches, is new.
    func keeps(sector: Int, of sectors: Int) -> Bool {
        switch self {
        case .none, .sizeOnly: false
        case .all: true
        case .firstHalf, .firstHalfFullSize: sector < sectors / 2
        case .lastHalf: sector >= sectors / 2
        case .evenSectors: sector % 2 == 0
        case .oddSectors: sector % 2 == 1
        case .firstSector: sector == 0
        case .lastSector: sector == sectors - 1
        }
    }

    /// Whether the file's new size is there though bytes at its end are not.
    var keepsSize: Bool { self == .sizeOnly || self == .firstHalfFullSize }
}

extension FileTree.Node {
    mutating func resize(to length: Int) {
        if length <= bytes.count {
            bytes.removeLast(bytes.count - length)
        } else {
            bytes += [UInt8](repeating: 0, count: length - bytes.count)
        }
    }

    mutating func write(_ new: [UInt8], at offset: Int, _ persistence: Persistence) {
        let size = Persistence.sectorSize
        let sectors = Persistence.sectorCount(offset: offset, count: new.count)
        if persistence.keepsSize, bytes.count < offset + new.count { resize(to: offset + new.count) }
        // Runs of sectors that are kept, each copied at once.
        var sector = 0
        while sector < sectors {
            guard persistence.keeps(sector: sector, of: sectors) else {
                sector += 1
                continue
            }
            var end = sector + 1
            while end < sectors, persistence.keeps(sector: end, of: sectors) { end += 1 }
            let start = max(offset, (offset / size + sector) * size)
            let stop = min(offset + new.count, (offset / size + end) * size)
            if bytes.count < stop { resize(to: stop) }
            bytes.replaceSubrange(start..<stop, with: new[(start - offset)..<(stop - offset)])
            sector = end
        }
    }
}
