/// One change of a file's content, chosen at random but the same for the same seed: so that a process can make changes
/// and another one can know what they must have made of the file.
public enum FileChange: Sendable, Hashable {
    case write(offset: Int, count: Int, seed: UInt64)
    case append(count: Int, seed: UInt64)
    case truncate(Int)
    case synchronize

    /// The next change of a file that is so long now. It never leaves a gap, so that each is one step.
    public static func next(_ random: inout DeterministicRandom, length: Int, most: Int = 200_000) -> FileChange {
        let seed = random.next()
        let count = [1, 100, 4096, 9000, 30_000].randomElement(using: &random) ?? 1
        switch Int.random(in: 0..<8, using: &random) {
        case 0..<4:
            let offset = Int.random(in: 0...length, using: &random)
            return .write(offset: length > most ? offset / 2 : offset, count: count, seed: seed)
        case 4, 5: return length > most ? .truncate(length / 3) : .append(count: count, seed: seed)
        case 6: return .truncate(Int.random(in: 0...length, using: &random))
        default: return .synchronize
        }
    }

    /// What is written.
    public var bytes: [UInt8] {
        switch self {
        case .write(_, let count, let seed), .append(let count, let seed):
            var random = DeterministicRandom(seed: seed)
            return random.bytes(count)
        default: return []
        }
    }

    /// Makes the same change to an array.
    public func apply(to content: inout [UInt8]) {
        switch self {
        case .write(let offset, _, _):
            let bytes = self.bytes
            let overlap = min(content.count - offset, bytes.count)
            content.replaceSubrange(offset..<(offset + overlap), with: bytes[..<overlap])
            content += bytes[overlap...]
        case .append: content += bytes
        case .truncate(let length): content.removeLast(content.count - length)
        case .synchronize: break
        }
    }
}
