import FileProtection

/// `candado doctor`
enum DoctorCommand {
    static func run(_ context: CommandContext) throws -> ExitStatus {
        let administration = try Administration(context, showsWarnings: false)
        let keybag = administration.keybag
        var report = DoctorReport()
        if try keybag.repair() {
            report.add("copies", .mended, "a bad copy of the keybag or the device key was made anew from the good one")
        } else {
            report.add("copies", .good, "both copies of the keybag and of the device key are good")
        }
        for warning in keybag.takeWarnings() { report.add("keybag", .warning, warning.description) }
        checkPermissions(keybag, context.system, &report)
        checkMemory(&report)
        let agent = checkAgent(keybag.home, context, &report)
        checkRecovery(keybag, &report)
        KeychainCheck(keybag: keybag, system: context.system, moved: agent?.movedPrograms ?? []).run(&report)
        if keybag.isErased {
            report.add("class keys", .bad, "too many wrong passcodes erased them")
        } else if keybag.hasPasscode {
            report.add("passcode", .good, "a passcode is set")
        } else {
            report.add("passcode", .warning, "there is none, so nothing can be locked")
        }
        if context.console.isJSON {
            context.console.line(report.json)
        } else {
            for line in report.lines { context.console.line(line) }
        }
        return report.status
    }

    private static func checkPermissions(_ keybag: Keybag, _ system: any SystemCalls, _ report: inout DoctorReport) {
        let home = keybag.home
        for path in [home.directory, home.stateDirectory(of: keybag.keybagIdentifier)] {
            guard let status = try? system.status(of: path, in: currentDirectory, followLinks: true) else { continue }
            if status.permissions & 0o077 == 0 {
                report.add("permissions", .good, "\(path.quoted) is closed to others")
            } else {
                report.add("permissions", .warning, "\(path.quoted) is open to others: chmod 700 closes it")
            }
        }
    }

    private static func checkMemory(_ report: inout DoctorReport) {
        switch SecretMemory.kind {
        case .secret: report.add("memory", .good, "secrets lie in memory that the kernel itself cannot see")
        case .locked: report.add("memory", .good, "secrets lie in memory that is never swapped out")
        case .unlocked:
            report.add("memory", .warning, "secrets may be swapped out: raise the limit of locked memory (ulimit -l)")
        }
    }

    /// An agent goes on as the program that was started, whatever was installed since. Returns what it says of itself.
    private static func checkAgent(
        _ home: KeybagHome, _ context: CommandContext, _ report: inout DoctorReport
    ) -> AgentStatus? {
        guard !context.invocation.has(.noAgent) else { return nil }
        do throws(ProtectionError) {
            guard let agent = try AgentPresence.status(of: home, context) else {
                report.add("agent", .good, "none runs; 'candado unlock' starts it")
                return nil
            }
            if agent.version != CommandTable.version {
                report.add(
                    "agent", .warning,
                    "it is of version \(agent.version), and this is \(CommandTable.version): 'candado agent --stop' ends it, and the next unlock starts the new one"
                )
            } else if agent.memoryIsLocked {
                report.add("agent", .good, "it runs as process \(agent.process)")
            } else {
                report.add("agent", .warning, StatusCommand.unlockedMemory)
            }
            return agent
        } catch {
            report.add(
                "agent", .bad, ([error.description] + Hints.advice(for: error)).joined(separator: "; "))
            return nil
        }
    }

    private static func checkRecovery(_ keybag: Keybag, _ report: inout DoctorReport) {
        guard keybag.hasRecoveryKey else { return report.add("recovery", .warning, StatusCommand.withoutRecoveryKey) }
        do throws(ProtectionError) {
            _ = try keybag.recoveryCapsule()
            report.add("recovery", .good, "there is a recovery key, and the recovery capsule is up to date")
        } catch {
            report.add("recovery", .warning, error.description)
        }
    }
}
