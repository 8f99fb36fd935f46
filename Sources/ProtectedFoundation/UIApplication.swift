import FileProtection
import Foundation

/// What UIKit's class of this name tells of protected data, so that code which asks it needs no change.
///
/// It is about the classes complete and complete-unless-open, like its model. Thread-safe, and bound to no actor.
public final class UIApplication: Sendable {
    /// The one there is; the `object` of the notifications.
    public static let shared = UIApplication()

    private init() {}

    /// True when files of every class can be read now, which without a passcode is always; false when locked, before the
    /// first unlock, and when the keys cannot be asked for, or not within a second: an agent that does not answer holds up
    /// the calls that need it for 10 seconds, but not the thread that asks this.
    public var isProtectedDataAvailable: Bool {
        let protection = Keys.given.map { try? $0.get() } ?? Self.source.answer(within: .seconds(1))
        return protection?.lockState == .unlocked
    }

    private static let source = BoundedQuestion { try? FileProtection.shared }

    /// Posted to `NotificationCenter.default` when a lock is near: before the keys go, unless the agent ended, which nobody
    /// can announce.
    ///
    /// Posted on a thread of Candado's own, one at a time; `addObserver(forName:object:queue:using:)` takes it to another. A lock
    /// without a grace period does not wait for observers. Observed from the moment that this name, or the other, is first
    /// asked for; also when there is no agent yet, and on when it ends and another begins. After
    /// `FileProtection.configure(_:)`, from the next time that a name is asked for.
    public static var protectedDataWillBecomeUnavailableNotification: NSNotification.Name {
        ProtectedDataNotices.shared.begin()
        return ProtectedDataNotices.willBecomeUnavailable
    }

    /// Posted when files of every class can be read again. Everything else is as with
    /// ``protectedDataWillBecomeUnavailableNotification``.
    public static var protectedDataDidBecomeAvailableNotification: NSNotification.Name {
        ProtectedDataNotices.shared.begin()
        return ProtectedDataNotices.didBecomeAvailable
    }
}

extension NSNotification.Name {
    /// The older name of ``UIApplication/protectedDataWillBecomeUnavailableNotification``.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    public static var UIApplicationProtectedDataWillBecomeUnavailable: NSNotification.Name {
        UIApplication.protectedDataWillBecomeUnavailableNotification
    }

    /// The older name of ``UIApplication/protectedDataDidBecomeAvailableNotification``.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    public static var UIApplicationProtectedDataDidBecomeAvailable: NSNotification.Name {
        UIApplication.protectedDataDidBecomeAvailableNotification
    }
}
