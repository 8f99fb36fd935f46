import ProtectionModel

/// Errors on the wire: a number for the code, its value, the reason where there is one, and the sentence. Causes and paths
/// stay where they arose.
extension WireWriter {
    mutating func error(_ error: ProtectionError, longestMessage: Int = Self.longestText) {
        var number: UInt8
        var value = WireWriter()
        switch error.code {
        case .locked(let protectionClass):
            number = 1
            value.number(protectionClass?.rawValue ?? 0)
        case .wrongPasscode: number = 2
        case .tooManyTries(let seconds):
            number = 3
            value.seconds(seconds)
        case .noPasscodeSet: number = 4
        case .noPasscodeSource: number = 5
        case .notProtected: number = 6
        case .recordMissing: number = 7
        case .damaged(let layer):
            number = 8
            value.oneOf(layer, ProtectionError.Layer.allCases)
        case .foreignKeybag(let identifier):
            number = 9
            value.raw(identifier.bytes)
        case .needsNewerVersion: number = 10
        case .unsupported: number = 11
        case .noKeybag: number = 12
        case .alreadyExists: number = 13
        case .otherClass(let protectionClass):
            number = 14
            value.number(protectionClass.rawValue)
        case .busy: number = 15
        case .invalidArgument: number = 16
        case .cancelled: number = 17
        case .secretMemory: number = 18
        case .cryptography: number = 19
        case .agentNotReachable: number = 20
        case .system(let errorNumber):
            number = 21
            value.number(errorNumber)
        }
        self.number(number)
        raw(value.bytes)
        let reasons = ProtectionError.Unsupported.allCases
        self.number(error.reason.flatMap { reasons.firstIndex(of: $0) }.map { UInt8($0 + 1) } ?? 0)
        var message = error.message
        while message.utf8.count > longestMessage { message.removeLast() }
        text(message)
    }
}

extension WireReader {
    mutating func error() throws(MalformedMessage) -> ProtectionError {
        let code = try errorCode()
        let reasons = ProtectionError.Unsupported.allCases
        let reasonNumber = Int(try number(UInt8.self))
        guard reasonNumber <= reasons.count else { throw MalformedMessage("there is no such reason") }
        let message = try text()
        return ProtectionError(code, message, reason: reasonNumber == 0 ? nil : reasons[reasonNumber - 1])
    }

    private mutating func errorCode() throws(MalformedMessage) -> ProtectionError.Code {
        switch try number(UInt8.self) {
        case 1:
            let letter = try number(UInt8.self)
            if letter == 0 { return .locked(nil) }
            guard let protectionClass = ProtectionClass(rawValue: letter) else {
                throw MalformedMessage("there is no such class")
            }
            return .locked(protectionClass)
        case 2: return .wrongPasscode
        case 3: return .tooManyTries(retryAfter: try seconds())
        case 4: return .noPasscodeSet
        case 5: return .noPasscodeSource
        case 6: return .notProtected
        case 7: return .recordMissing
        case 8: return .damaged(try oneOf(ProtectionError.Layer.allCases, "layer"))
        case 9:
            guard let identifier = KeybagIdentifier(bytes: try take(16)) else {
                throw MalformedMessage("a keybag has no such identifier")
            }
            return .foreignKeybag(identifier)
        case 10: return .needsNewerVersion
        case 11: return .unsupported
        case 12: return .noKeybag
        case 13: return .alreadyExists
        case 14: return .otherClass(try protectionClass())
        case 15: return .busy
        case 16: return .invalidArgument
        case 17: return .cancelled
        case 18: return .secretMemory
        case 19: return .cryptography
        case 20: return .agentNotReachable
        case 21: return .system(try number(Int32.self))
        default: throw MalformedMessage("there is no such error")
        }
    }
}
