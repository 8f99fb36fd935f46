import FileProtection
import Foundation

extension ProtectionClass {
    /// The class that a dictionary of attributes asks for; nil when it asks for none. Throws for one that is not known:
    /// passing over it would leave a file weaker than its owner believes.
    init?(in attributes: [FileAttributeKey: Any]?) throws(ProtectionError) {
        guard let value = attributes?[.protectionKey] else { return nil }
        try self.init(protectionValue: value)
    }

    /// The class of a value as attributes and resource values have it: a `FileProtectionType`, a ``URLFileProtection``, or
    /// the raw value of either.
    init(protectionValue value: Any) throws(ProtectionError) {
        if let value = value as? URLFileProtection {
            try self.init(value)
        } else if let value = value as? FileProtectionType {
            try self.init(protectionName: value.rawValue)
        } else if let value = value as? String {
            try self.init(protectionName: value)
        } else {
            throw ProtectionError(.invalidArgument, "a value of type \(type(of: value)) names no protection class")
        }
    }

    private init(protectionName name: String) throws(ProtectionError) {
        if name.hasPrefix(URLFileProtection.prefix) {
            try self.init(URLFileProtection(rawValue: name))
        } else {
            try self.init(FileProtectionType(rawValue: name))
        }
    }

    /// The option that asks for this class.
    var writingOption: Data.WritingOptions {
        switch self {
        case .complete: .completeFileProtection
        case .completeUnlessOpen: .completeFileProtectionUnlessOpen
        case .completeUntilFirstUserAuthentication: .completeFileProtectionUntilFirstUserAuthentication
        case .none: .noFileProtection
        }
    }
}

extension CocoaError {
    /// The error of a copy or a move, as Foundation makes them: on the writing side, with both paths.
    init(_ error: ProtectionError, _ variant: Variant, from source: String, to target: String) {
        let plain = CocoaError(error, .writing, path: source)
        var information = plain.userInfo
        information["NSUserStringVariant"] = [variant.rawValue]
        information["NSSourceFilePathErrorKey"] = source
        information["NSDestinationFilePath"] = target
        self.init(plain.code, userInfo: information)
    }

    enum Variant: String {
        case copy = "Copy"
        case move = "Move"
    }
}

extension ProtectionError {
    /// A failed system call of this module's own.
    init(_ error: SystemError, at path: FilePath) {
        switch error.errorNumber {
        case ErrorNumber.exists:
            self.init(.alreadyExists, "the file exists already", path: path, cause: error)
        case ErrorNumber.notSupported:
            self.init(
                .unsupported, "the file system has no extended attributes of users, which hold the key record",
                path: path, cause: error, reason: .fileSystem)
        default:
            self.init(
                .system(error.errorNumber), "\(error.call) failed: \(SystemErrorText.sentence(error.errorNumber))",
                path: path, cause: error)
        }
    }

    /// Runs system calls and maps what they throw.
    static func mapping<Result>(
        at path: FilePath, _ body: () throws(SystemError) -> Result
    ) throws(ProtectionError) -> Result {
        do throws(SystemError) {
            return try body()
        } catch {
            throw ProtectionError(error, at: path)
        }
    }
}

extension Keys {
    /// How files are reached where no key is needed: tests can make these calls fail.
    static var systemCalls: any SystemCalls { (try? given?.get())?.files.system ?? LinuxSystemCalls.shared }
}
