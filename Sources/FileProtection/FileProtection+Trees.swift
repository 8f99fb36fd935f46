import Keybag
import LinuxSystem
import ProtectedFiles
import ProtectionModel

extension FileProtection {
    /// Converts a file or a tree in place (`TreeConversion`), keeps Candado's own home out of it, and puts the recovery
    /// capsule at the root of a tree that was protected.
    public func convert(
        _ path: FilePath, _ conversion: Conversion, options: TreeConversion.Options = TreeConversion.Options(),
        isCancelled: @escaping @Sendable () -> Bool = { false }, progress: @escaping @Sendable (Int) -> Void = { _ in },
        report: @escaping @Sendable (ConversionOutcome) -> Void
    ) throws(ProtectionError) {
        var options = options
        options.excluded.formUnion(files.excluded)
        options.homeMarks = KeybagHome.marks
        let tree = TreeConversion(
            files, conversion, options: options, isCancelled: isCancelled, progress: progress, report: report)
        if case .protect = conversion, options.recursive, isDirectory(path), try !tree.isExcluded(path) {
            // Needs no key, so that an agent's client can do it in its own view of the file system.
            let own = embeddedKeybag
            let keybag = if let own { own } else { try Keybag.open(home, system: files.system, clock: clock) }
            _ = try keybag.placeRecoveryCapsule(in: path)
        }
        // In the home itself temporary names are other commands' business.
        if !isDirectory(path), try !tree.isExcluded(path),
            sweptDirectories.withLock({ $0.insert(path.parent).inserted })
        {
            try tree.removeLeftovers(beside: path)
        }
        try tree.run(path)
    }

    private func isDirectory(_ path: FilePath) -> Bool {
        (try? files.system.status(of: path, in: currentDirectory, followLinks: false))?.kind == .directory
    }
}
