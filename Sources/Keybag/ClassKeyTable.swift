import ProtectionModel

/// Class keys in memory, of all generations.
struct ClassKeyTable: Sendable {
    var keys: [KeyName: ClassKey] = [:]
    /// The generation that wraps new files.
    var newest: [KeyClass: UInt8] = [:]

    func key(_ keyClass: KeyClass, _ generation: UInt8) -> ClassKey? {
        keys[KeyName(keyClass: keyClass, generation: generation)]
    }

    func newestKey(_ keyClass: KeyClass) -> (generation: UInt8, key: ClassKey)? {
        guard let generation = newest[keyClass], let key = key(keyClass, generation) else { return nil }
        return (generation, key)
    }
}
