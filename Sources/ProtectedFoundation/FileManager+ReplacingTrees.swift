import FileProtection
import Foundation

extension Item {
    /// Throws when the content of a protected file below a directory cannot be read now: then none of it may be replaced.
    func requireAllReadable() throws(ProtectionError) {
        guard isDirectory else { return }
        try walk { visit in
            guard visit.status.kind == .regular else { return }
            switch try visit.inspection.state {
            case .plain: return
            default: try Keys.protection.files.open(visit.name, in: visit.directory, for: .reading).close()
            }
        }
    }

    /// Gives a file a class, or a directory and what is below it that has none yet: plain files are protected, in the class
    /// of the nearest directory that has one.
    ///
    /// Directories come last: when nothing can be protected, nothing has changed.
    func give(_ wanted: ProtectionClass) throws(ProtectionError) {
        let top = path.withoutTrailingSlashes
        var classes: [FilePath: ProtectionClass] = [:]
        var plain: [(FilePath, ProtectionClass)] = []
        var others: [(FilePath, ProtectionClass)] = []
        try walk { visit in
            let inspection = try visit.inspection
            let isTop = visit.path == top
            let given = isTop ? wanted : inspection.protectionClass ?? classes[visit.path.parent] ?? wanted
            switch inspection.state {
            case .plain: plain.append((visit.path, given))
            case .directory:
                classes[visit.path] = given
                if inspection.protectionClass != given { others.append((visit.path, given)) }
            case .protected where isTop && inspection.protectionClass != given: others.append((visit.path, given))
            case .damaged where visit.status.kind == .directory:
                throw ProtectionError(
                    .damaged(.record), inspection.message ?? "the class cannot be read", path: visit.path)
            case .protected, .damaged, .foreign, .unsupported: return
            }
        }
        guard !plain.isEmpty || !others.isEmpty else { return }
        let protection = try Keys.protection
        for (path, given) in plain { try protection.protectPlainFile(path, given) }
        for (path, given) in others.reversed() { try protection.setProtectionClass(given, of: path) }
    }

    /// Visits what is here and below. What cannot be looked at is thrown.
    private func walk(_ body: (TreeWalk.Visit) throws -> Void) throws(ProtectionError) {
        do {
            try TreeWalk(crossesFileSystems: true, system: Keys.systemCalls).run(path.withoutTrailingSlashes) {
                do {
                    try body(try $1.get())
                } catch let error as ProtectionError {
                    throw error.path == nil || error.path == $0 ? error : Self.at($0, error)
                }
            }
        } catch {
            throw error as? ProtectionError ?? ProtectionError(.system(EIO), "\(error)", path: path)
        }
    }

    /// A name alone, relative to an open directory, tells nobody which file it is.
    private static func at(_ path: FilePath, _ error: ProtectionError) -> ProtectionError {
        ProtectionError(error.code, error.message, path: path, cause: error.cause, reason: error.reason)
    }
}
