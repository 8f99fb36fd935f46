import Foundation

// swift-format-ignore: AlwaysUseLowerCamelCase
/// What a result code means: one sentence, or more where there is something to do about it. Unknown codes are named by their
/// number. Thread-safe.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    NSString(string: ResultMessages.sentences[status] ?? "OSStatus \(status)")
}
