import Foundation

/// On Apple's systems these can be compared and be keys; on Linux Foundation does not say so.
extension FileProtectionType: @retroactive Hashable {
    public static func == (left: FileProtectionType, right: FileProtectionType) -> Bool {
        left.rawValue == right.rawValue
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}
