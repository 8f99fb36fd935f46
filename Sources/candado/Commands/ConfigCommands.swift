import FileProtection

/// `candado config get` and `candado config set`
enum ConfigCommands {
    static func get(_ context: CommandContext) throws -> ExitStatus {
        let home = try homeWithKeybag(context)
        let settings = try Settings.read(from: home, context.system)
        let console = context.console
        let asked = context.invocation.operands.first?.text.flatMap(Settings.Name.init(rawValue:))
        let names = asked.map { [$0] } ?? Settings.Name.allCases
        if console.isJSON {
            console.line(JSON.document(names.map { .init($0.rawValue, .string(settings.value(of: $0))) }))
        } else if let asked {
            console.line(settings.value(of: asked))
        } else {
            for name in names { console.line("\(name.rawValue) \(settings.value(of: name))") }
        }
        return .done
    }

    static func set(_ context: CommandContext) throws -> ExitStatus {
        let home = try homeWithKeybag(context)
        let operands = context.invocation.operands
        guard operands.count == 2, let name = operands[0].text.flatMap(Settings.Name.init(rawValue:)),
            let value = operands[1].text
        else { throw UsageError("the value of a setting is text") }
        var settings: Settings
        do {
            settings = try Settings.read(from: home, context.system)
        } catch {
            guard error.code == .invalidArgument else { throw error }
            context.console.warning("\(error); the other settings have their defaults now")
            settings = Settings()
        }
        try settings.set(name, to: value)
        try settings.write(to: home, context.system)
        Administration.tellAgent(of: home, context)
        return .done
    }

    /// Settings belong to a keybag: without one there is nothing to set.
    private static func homeWithKeybag(_ context: CommandContext) throws -> KeybagHome {
        let home = try Session.home(context)
        _ = try Keybag.claimedIdentifier(in: home, context.system)
        return home
    }
}
