import LinuxSystem
import ProtectionModel

/// The key record as it is stored with one file: in the attribute, and copied in the container's header.
struct StoredRecord {
    /// What the attribute holds.
    enum Attribute {
        case missing
        case good(KeyRecord)
        case bad(ProtectionError)
    }

    let attribute: Attribute
    /// Both header slots as far as the file reaches; empty for an empty file.
    let slots: [UInt8]
    /// The slots' record, unproven, of the slot that claims the higher counter.
    let headerRecord: KeyRecord?
    /// The record of the other slot, when it differs: tried last, when nothing else opens the container.
    let spareRecord: KeyRecord?
    /// Why there is no ``headerRecord``.
    let headerError: ProtectionError?
    /// True when the file begins like a container.
    let looksLikeContainer: Bool

    /// Reads both places of an open file.
    init(_ descriptor: Int32, _ system: any SystemCalls) throws {
        attribute = try Self.attribute(of: descriptor, system)
        var slots = [UInt8](repeating: 0, count: ContainerGeometry.slotsSize)
        let count = try slots.withUnsafeMutableBytes { try system.readFully(descriptor, into: $0, at: 0) }
        slots.removeSubrange(count...)
        self.slots = slots
        var headers: [ContainerHeader] = []
        var error: ProtectionError?
        var magic = false
        slots.withUnsafeBytes { bytes in
            for slot in 0..<2 {
                let start = slot * ContainerGeometry.slotSize
                guard start < bytes.count else { continue }
                let end = min(start + ContainerGeometry.slotSize, bytes.count)
                let part = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                guard ContainerHeader.hasMagic(part) else { continue }
                magic = true
                do throws(ProtectionError) {
                    headers.append(try ContainerHeader(decoding: part))
                } catch let problem {
                    if error == nil || problem.code == .needsNewerVersion { error = problem }
                }
            }
        }
        let newer = error?.code == .needsNewerVersion
        headers.sort { $0.counter > $1.counter }
        headerRecord = newer ? nil : headers.first?.record
        spareRecord = newer || headers.count < 2 || headers[0].record == headers[1].record ? nil : headers[1].record
        headerError = newer || headers.isEmpty ? error : nil
        looksLikeContainer = magic
    }

    /// The attribute of an open file, decoded.
    static func attribute(of descriptor: Int32, _ system: any SystemCalls) throws -> Attribute {
        guard let bytes = try system.attribute(KeyRecord.attributeName, of: descriptor) else { return .missing }
        do throws(ProtectionError) {
            return .good(try KeyRecord(decoding: bytes))
        } catch {
            return .bad(error)
        }
    }

    /// The class that a directory gives to new files; nil without a record.
    ///
    /// Throws `damaged(record)` or `needsNewerVersion`.
    static func directoryClass(of descriptor: Int32, _ system: any SystemCalls) throws -> ProtectionClass? {
        switch try attribute(of: descriptor, system) {
        case .missing: return nil
        case .bad(let error): throw error
        case .good(let record):
            guard record.isDirectory else {
                throw ProtectionError(.damaged(.record), "the directory has the key record of a file")
            }
            return record.protectionClass
        }
    }

    /// Throws when what lies here is from the future and must not be overwritten.
    static func refuseNewer(_ attribute: Attribute) throws {
        if case .bad(let error) = attribute, error.code == .needsNewerVersion { throw error }
    }

    /// Which copies can count, the one that counts first: the stronger class, then the higher generation, then the one
    /// that admits a weaker past. Being locked is never a reason to try the next.
    ///
    /// Throws `notProtected`, `recordMissing`, `damaged` or `needsNewerVersion` when there is none.
    func candidates() throws(ProtectionError) -> [(record: KeyRecord, place: RecordPlace)] {
        if case .bad(let error) = attribute, error.code == .needsNewerVersion { throw error }
        if let headerError, headerError.code == .needsNewerVersion { throw headerError }
        var result: [(record: KeyRecord, place: RecordPlace)] = []
        switch attribute {
        case .good(let record):
            if record.isDirectory {
                guard looksLikeContainer else {
                    throw ProtectionError(.damaged(.record), "the file has the key record of a directory")
                }
            } else {
                guard !slots.isEmpty else {
                    throw ProtectionError(.damaged(.header), "the file has a key record, but its content is gone")
                }
                guard looksLikeContainer else {
                    throw ProtectionError(.damaged(.header), "the file has a key record, but is no container")
                }
                result.append((record, headerRecord == record ? .both : .attribute))
            }
        case .bad(let error):
            guard looksLikeContainer else { throw error }
        case .missing:
            guard looksLikeContainer else {
                throw ProtectionError(.notProtected, "the file is not protected")
            }
        }
        if let headerRecord, result.first?.record != headerRecord { result.append((headerRecord, .header)) }
        if result.isEmpty {
            if case .missing = attribute {
                throw ProtectionError(
                    .recordMissing, "the key record is missing, and the header's copy of it is damaged")
            }
            throw headerError ?? ProtectionError(.damaged(.header), "neither header of the container decodes")
        }
        result.sort { Self.countsBefore($0.record, $1.record) }
        if let spareRecord, !result.contains(where: { $0.record == spareRecord }) {
            result.append((spareRecord, .header))
        }
        return result
    }

    private static func countsBefore(_ left: KeyRecord, _ right: KeyRecord) -> Bool {
        if left.protectionClass != right.protectionClass {
            return left.protectionClass.isStronger(than: right.protectionClass)
        }
        if left.generation != right.generation { return left.generation > right.generation }
        return left.flags.contains(.keyWasWeaker) && !right.flags.contains(.keyWasWeaker)
    }
}

/// Where the key record that counts was found.
public enum RecordPlace: String, Sendable, Hashable, CaseIterable {
    /// The attribute and the header's copy say the same.
    case both
    /// Only the attribute, or the attribute counts more than the header's copy.
    case attribute
    /// Only the header's copy, or it counts more than the attribute: `repair` mends it.
    case header
}
