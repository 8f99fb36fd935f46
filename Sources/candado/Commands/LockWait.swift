import FileProtection

/// `candado lock --wait`: what comes after the lock. It only looks, so that whoever unlocks meanwhile is not locked again.
struct LockWait {
    private static let interval: Int32 = 200

    private let home: KeybagHome
    private let context: CommandContext
    private let keybag: Keybag

    init(_ home: KeybagHome, _ context: CommandContext) throws {
        self.home = home
        self.context = context
        keybag = try Keybag.open(home, system: context.system, clock: context.clock)
    }

    /// Waits until nothing is in the way any more. What was is said once. Ctrl-C ends the waiting, not the lock.
    func run(from first: LockReport) throws -> LockReport {
        var report = first
        var said: LockReport?
        while !report.isComplete || !report.openFiles.isEmpty {
            if report != said {
                LockCommand.describe(report, context.console)
                if !report.isComplete {
                    context.console.warning("waiting for " + report.inTheWay.joined(separator: ", "))
                }
                said = report
            }
            guard Interrupts.wait(milliseconds: Self.interval) else {
                throw ProtectionError(.cancelled, "interrupted; what could be locked is locked")
            }
            report = try look()
        }
        return report
    }

    private func look() throws -> LockReport {
        guard let status = try AgentPresence.status(of: home, context) else {
            return LockReport(outcome: Self.outcome(keybag.otherHolders()))
        }
        guard status.state != .unlocked else {
            throw CommandFailure(.failed, "it was locked, and unlocked again meanwhile")
        }
        return LockReport(outcome: Self.outcome(status.inTheWay), openFiles: status.openFiles)
    }

    private static func outcome(_ holders: [String]) -> LockOutcome {
        holders.isEmpty ? .locked : .incomplete(holders: holders)
    }
}
