import FileProtection

/// What `class` tells of one path.
struct ClassReport: Sendable {
    let path: FilePath
    let inspection: FileInspection

    /// The line for people: the path, and what it is.
    var line: String { path.displayed + ": " + description }

    private var description: String {
        let name = inspection.protectionClass?.name ?? "unknown class"
        switch inspection.state {
        case .protected:
            return inspection.place == .header ? "\(name), key record in the header only" : name
        case .plain: return "plain"
        case .directory:
            return inspection.protectionClass == nil ? "directory" : "directory, new files \(name)"
        case .foreign:
            return "foreign, \(name) of keybag \(inspection.record?.keybag.description ?? "unknown")"
        case .damaged: return "damaged: \(inspection.message ?? "the key record does not decode")"
        case .unsupported: return "unsupported: \(inspection.message ?? "it cannot be protected")"
        }
    }

    /// One line of JSON.
    var json: JSON {
        var members: [JSON.Member] = [JSON.path(path), .init("state", .string(inspection.state.rawValue))]
        if let protectionClass = inspection.protectionClass {
            members.append(.init("class", .string(protectionClass.name)))
        }
        if let record = inspection.record {
            members.append(.init("keybag", .string(record.keybag.description)))
            if record.flags.contains(.keyWasWeaker) { members.append(.init("key_was_weaker", .boolean(true))) }
        }
        if let place = inspection.place {
            members.append(.init("record", .string(place == .header ? "header" : "attribute")))
        }
        if let message = inspection.message { members.append(.init("message", .string(message))) }
        return .document(members)
    }
}
