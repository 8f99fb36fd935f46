import KeychainModel

/// The items of one keychain: queries in Apple's grammar, access groups, and rows wherever they lie. `docs/keychain.md`.
///
/// Thread-safe. Who asks is given with each request: whoever serves other processes says who they are.
public final class KeychainStore: Sendable {
    let tables: any ItemTables
    let protection: any ItemProtection

    package init(tables: any ItemTables, protection: any ItemProtection) {
        self.tables = tables
        self.protection = protection
    }
}
