import FileProtection
import Keychain
import KeychainModel
import KeychainStore

/// What `doctor` looks at of the keychain. Needs no key.
struct KeychainCheck {
    let keybag: Keybag
    let system: any SystemCalls

    func run(_ report: inout DoctorReport) {
        do throws(KeychainError) {
            let store = try KeychainStore.open(keybag.home.keychain, keys: keybag, system: system)
            show(try store.condition(), &report)
            for group in try groupsOfMissingPrograms(store) {
                report.add(
                    "keychain", .warning,
                    "there are items of \(Quoted.text(group)), and no program is there: if it was moved, 'candado keychain adopt' gives it its items back"
                )
            }
        } catch {
            report.add("keychain", .bad, error.description)
        }
        do throws(KeychainError) {
            let count = try EntitlementsFile(inHome: keybag.home.directory, system: system).list().count
            guard count > 0 else { return }
            report.add("entitlements", .good, "\(count) \(count == 1 ? "program has" : "programs have") some")
        } catch {
            report.add("entitlements", .bad, error.description)
        }
    }

    /// What was set aside or moved out of the way is kept until somebody looks at it.
    private func show(_ condition: KeychainCondition, _ report: inout DoctorReport) {
        let count = condition.items.values.reduce(0, +)
        report.add("keychain", .good, "it has \(count) \(count == 1 ? "item" : "items")")
        if condition.setAside > 0 {
            report.add(
                "keychain", .warning,
                "\(condition.setAside) of its items could not be opened and are set aside, where no command shows them: restore the home from a backup if you miss some"
            )
        }
        for name in condition.damagedDatabases {
            report.add(
                "keychain", .bad,
                "a damaged database is kept beside it, and its items are not in the present one: restore the home from a backup, then move \(Quoted.text(name)) away"
            )
        }
    }

    /// Access groups that are paths of programs which are not there any more.
    private func groupsOfMissingPrograms(_ store: KeychainStore) throws(KeychainError) -> [String] {
        var groups: Set<String> = []
        try Keychain.administering(store).perform(.list(["sync": .text("syna")])) { (item) throws(KeychainError) in
            if item.accessGroup.hasPrefix("/") { groups.insert(item.accessGroup) }
        }
        return groups.sorted().filter { group in
            guard let path = FilePath(group) else { return false }
            do throws(SystemError) {
                _ = try system.status(of: path, in: currentDirectory, followLinks: true)
                return false
            } catch { return error.errorNumber == ErrorNumber.noEntry }
        }
    }
}
