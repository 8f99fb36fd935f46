import KeychainModel

extension KeychainStore {
    /// An empty keychain in memory, which ends with its last reference. Nothing is sealed; `lock` says what can be read, as
    /// the keybag would.
    public static func inMemory(_ lock: SimulatedLock = SimulatedLock()) -> KeychainStore {
        KeychainStore(tables: MemoryTables(), protection: OpenProtection(lock))
    }
}
