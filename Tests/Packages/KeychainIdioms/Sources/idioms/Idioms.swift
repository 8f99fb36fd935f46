import Foundation

// Runs each idiom, and says what came of it: scripts/test-packages compares.

@main
struct Idioms {
    static func main() async {
        await show("token store") { try tokenStore() }
        await show("manager") { try keychainManager() }
        await show("property wrapper") { try propertyWrapper() }
        await show("vault") { try await vault() }
        await show("mutable query") { try mutableQuery() }
        await show("access control") { try accessControlled() }
        await show("injected functions") { try injectedFunctions() }
        await show("logins") { try logins() }
        await show("get or create") { try getOrCreate() }
    }

    private static func show(_ name: String, _ idiom: @Sendable () async throws -> String) async {
        do { print("\(name): \(try await idiom())") } catch { print("\(name): failed with \(error)") }
    }
}
