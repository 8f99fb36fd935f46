import LinuxSystem

/// The copy of the recovery capsule in a protected tree. `docs/formats/recovery-capsule.md`.
public enum RecoveryCapsuleFile {
    /// Its name at the root of the tree. It stays plain: it has to open where no key record does.
    public static let name: FilePath = ".candado-recovery"
}
