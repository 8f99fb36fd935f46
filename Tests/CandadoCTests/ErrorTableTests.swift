import CCandado
import FileProtection
import Glibc
import TestSupport
import Testing

@testable import CandadoC

/// Errors, as C sees them.
extension CLibraryTests {
    @Suite(.serialized) struct ErrorTableTests {
        private static let identifier = KeybagIdentifier(bytes: Array(0..<16))

        private static let codes: [(ProtectionError.Code, Int32, candado_error_kind)] = [
            (.locked(.complete), ENOKEY, CANDADO_ERROR_LOCKED), (.locked(nil), ENOKEY, CANDADO_ERROR_LOCKED),
            (.wrongPasscode, EKEYREJECTED, CANDADO_ERROR_OTHER),
            (.tooManyTries(retryAfter: 1), EAGAIN, CANDADO_ERROR_OTHER), (.noPasscodeSet, EPERM, CANDADO_ERROR_OTHER),
            (.noPasscodeSource, ENOKEY, CANDADO_ERROR_LOCKED), (.notProtected, ENODATA, CANDADO_ERROR_NOT_PROTECTED),
            (.recordMissing, ENODATA, CANDADO_ERROR_RECORD_MISSING),
            (.needsNewerVersion, EOPNOTSUPP, CANDADO_ERROR_NEEDS_NEWER_VERSION),
            (.unsupported, EOPNOTSUPP, CANDADO_ERROR_UNSUPPORTED), (.noKeybag, ENOKEY, CANDADO_ERROR_NO_KEYBAG),
            (.alreadyExists, EEXIST, CANDADO_ERROR_SYSTEM), (.otherClass(.none), EPERM, CANDADO_ERROR_OTHER),
            (.busy, EBUSY, CANDADO_ERROR_BUSY), (.invalidArgument, EINVAL, CANDADO_ERROR_INVALID_ARGUMENT),
            (.cancelled, ECANCELED, CANDADO_ERROR_OTHER), (.secretMemory, ENOMEM, CANDADO_ERROR_OTHER),
            (.cryptography, EIO, CANDADO_ERROR_OTHER),
            (.agentNotReachable, ECONNREFUSED, CANDADO_ERROR_AGENT_NOT_REACHABLE),
            (.system(ENOSPC), ENOSPC, CANDADO_ERROR_SYSTEM), (.system(EBADF), EBADF, CANDADO_ERROR_INVALID_ARGUMENT),
        ]

        @Test func everyErrorHasItsErrnoItsKindAndItsSentence() {
            var codes = Self.codes
            for layer in ProtectionError.Layer.allCases {
                codes.append((.damaged(layer), EBADMSG, CANDADO_ERROR_DAMAGED))
            }
            if let identifier = Self.identifier {
                codes.append((.foreignKeybag(identifier), ENOKEY, CANDADO_ERROR_FOREIGN_KEYBAG))
            }
            #expect(codes.count == Self.codes.count + 8)
            for (code, number, kind) in codes {
                let path: FilePath = "a\nfile"
                #expect(CallFailure(ProtectionError(code, "it went wrong", path: path)).noted() == -Int64(number))
                #expect(candado_error_kind() == Int32(kind.rawValue), "\(code)")
                #expect(lastError().hasPrefix("'a\\nfile': it went wrong"), "\(lastError())")
                #expect(!lastError().contains("\n"))
                // Whoever reads it may be no programmer.
                #expect(!lastError().contains("candado_") && !lastError().contains("CANDADO_EVENT"), "\(lastError())")
                #expect(ProtectionError(code, "").errorNumber == number)
            }
        }

        @Test func nothingThatFailsLooksLikeSuccess() {
            for number: Int32 in [0, -1, 4096, .max, .min] {
                #expect(CallFailure(ProtectionError(.system(number), "odd")).noted() == -Int64(EIO))
            }
        }

        @Test func everyErrnoHasASentenceThatIsNeverNull() {
            let own: [Int32] = [
                ENOKEY, EBADMSG, ENODATA, EOPNOTSUPP, ECONNREFUSED, EBUSY, EEXIST, EBADF, ESTALE, EINVAL, EFAULT,
                ERANGE,
                EPIPE, EKEYREJECTED, EAGAIN, ECANCELED, EPERM, ENOMEM, EIO, ENOENT,
            ]
            var sentences: Set<String> = []
            for number in own {
                let sentence = candado_error_text(number).map { String(cString: $0) } ?? ""
                #expect(sentences.insert(sentence).inserted && !sentence.isEmpty)
                #expect(sentence.first?.isLowercase == true && sentence.last != ".")
            }
            errno = 77
            for number: Int32 in [-1, 0, 1000, 5000, .max, .min] { #expect(candado_error_text(number) != nil) }
            #expect(errno == 77)
        }

        @Test func aSentenceIsCopiedLikeSnprintfDoes() {
            _ = CallFailure(ProtectionError(.busy, "abc")).noted()
            errno = 77
            #expect(candado_error(nil, 0) == 3)
            for size in 0...5 {
                var buffer = [CChar](repeating: 1, count: 8)
                #expect(candado_error(&buffer, size) == 3)
                let expected = Array("abc".utf8.prefix(max(size - 1, 0))).map { CChar($0) }
                #expect(Array(buffer.prefix(expected.count)) == expected)
                if size > 0 { #expect(buffer[expected.count] == 0) }
                #expect(buffer[max(size, 0)...].dropFirst(size > 0 ? 0 : 0).allSatisfy { $0 == 1 } || size == 0)
            }
            #expect(errno == 77)
        }

        @Test func aSentenceThatIsTooLongEndsBetweenCharacters() {
            for shift in 0..<4 {
                let text = String(repeating: "a", count: shift) + String(repeating: "\u{20AC}", count: 2000)
                _ = CallFailure(ProtectionError(.busy, text)).noted()
                let length = candado_error(nil, 0)
                #expect((1021...1023).contains(length))
                #expect(text.hasPrefix(lastError()) && (length - shift) % 3 == 0)
            }
        }

        @Test func aThreadThatHasNotFailedHasNoSentence() {
            WorkerThreads.run(2) { thread in
                guard thread == 1 else { return }
                if candado_error(nil, 0) != 0 || candado_error_kind() != 0 {
                    Issue.record("an error of another thread")
                }
            }
        }
    }
}
