/// Something that did not stop an operation but that its user should know. Never holds a secret.
public enum KeybagWarning: Hashable, Sendable, CustomStringConvertible {
    /// One copy of the keybag was bad and has been written anew from the other.
    case keybagCopyRepaired
    /// One copy of the keybag is bad and could not be written anew.
    case keybagCopyDamaged
    /// One copy of the device key is missing or bad. Only an explicit repair writes it anew.
    case deviceKeyCopyDamaged
    /// The attempt file was bad and has been made anew: the count of wrong passcodes began again.
    case attemptFileRebuilt
    /// The attempt file cannot be written: each process allows one wrong try an hour and does not know of the others', and
    /// nothing is erased after them.
    case attemptFileNotWritable
    /// The attempt file is there and cannot be read: how many wrong passcodes came before is not known, so tries are slowed
    /// down as far as possible.
    case attemptFileNotReadable
    /// The recovery capsule in the home or at one of its places is out of date and could not be written.
    case recoveryCapsuleNotWritten
    /// The file that tells others that keys are held here cannot be locked: a lock elsewhere will not name this process.
    case holderNotRegistered
    /// Memory that holds keys could not be locked: it may be swapped out.
    case memoryNotLocked

    /// One sentence, lower case, no full stop.
    public var description: String {
        switch self {
        case .keybagCopyRepaired: "one copy of the keybag was damaged and has been repaired from the other"
        case .keybagCopyDamaged: "one copy of the keybag is damaged and could not be repaired"
        case .deviceKeyCopyDamaged:
            "one copy of the device key is missing or damaged; repair it before the other goes too"
        case .attemptFileRebuilt: "the record of wrong passcodes was damaged and has been started anew"
        case .attemptFileNotWritable:
            "the record of wrong passcodes cannot be written; this process allows one wrong try an hour, and another "
                + "process does not know of it"
        case .attemptFileNotReadable:
            "the record of wrong passcodes cannot be read; this process allows one wrong try an hour"
        case .recoveryCapsuleNotWritten: "a copy of the recovery capsule is out of date and could not be written"
        case .holderNotRegistered: "this process cannot be seen as a holder of keys by a lock elsewhere"
        case .memoryNotLocked:
            "memory for keys could not be locked, so it may be swapped out: raise the limit (ulimit -l)"
        }
    }
}
