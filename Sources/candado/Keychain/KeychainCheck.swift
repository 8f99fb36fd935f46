import FileProtection
import Keychain
import KeychainModel
import KeychainStore

/// What `doctor` looks at of the keychain. Needs no key.
struct KeychainCheck {
    let keybag: Keybag
    let system: any SystemCalls
    /// What the agent says of programs that were moved; none where no agent runs.
    let moved: [AgentStatus.MovedProgram]

    func run(_ report: inout DoctorReport) {
        do throws(KeychainError) {
            let store = try KeychainStore.open(keybag.home.keychain, keys: keybag, system: system)
            show(try store.condition(checking: true), &report)
            show(missing: try groupsOfMissingPrograms(store), &report)
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
        if !condition.faults.isEmpty {
            let what = condition.faults.prefix(3).joined(separator: "; ")
            report.add(
                "keychain", .bad,
                "its database is damaged (\(what)): copy the home away before anything else, and restore it from a backup if items are missing"
            )
        }
        if condition.setAside > 0 {
            let groups = condition.setAsideGroups.sorted { $0.key < $1.key }
                .map { "\($0.value) of \(Quoted.text($0.key))" }.joined(separator: ", ")
            report.add(
                "keychain", .warning,
                "items that could not be opened are set aside, where no command shows them (\(groups)): restore the home from a backup if you miss some"
            )
        }
        for name in condition.damagedDatabases {
            report.add(
                "keychain", .bad,
                "a damaged database is kept beside it, and what could not be read of it is not in the present one: restore the home from a backup if you miss items, then move \(Quoted.text(name)) away"
            )
        }
    }

    /// Who has items and is not there any more, and where it is now, if the agent has met it.
    private func show(missing groups: [String], _ report: inout DoctorReport) {
        for group in groups {
            let found = moved.filter { $0.old == group }
            if found.isEmpty {
                report.add(
                    "keychain", .warning,
                    "there are items of \(Quoted.text(group)), and no program is there: if it was moved, 'candado keychain adopt' gives it its items back"
                )
            }
            for program in found {
                let old = Quoted.text(program.old)
                let new = Quoted.text(program.new)
                report.add(
                    "keychain", .warning,
                    "\(new) finds no item, and \(old), which is not there any more, has some: if it was moved, 'candado keychain adopt' gives it its items back: candado keychain adopt \(old) \(new)"
                )
            }
        }
    }

    /// Access groups that are paths of programs or scripts which are not there any more.
    private func groupsOfMissingPrograms(_ store: KeychainStore) throws(KeychainError) -> [String] {
        try store.accessGroups().filter { group in
            let isScript = group.hasPrefix("script:/")
            guard isScript || group.hasPrefix("/"), let path = FilePath(isScript ? String(group.dropFirst(7)) : group)
            else { return false }
            do throws(SystemError) {
                _ = try system.status(of: path, in: currentDirectory, followLinks: true)
                return false
            } catch { return [ErrorNumber.noEntry, ErrorNumber.notDirectory].contains(error.errorNumber) }
        }
    }
}
