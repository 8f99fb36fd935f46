import Testing

@testable import Cryptography

/// What OpenSSL cannot give is an error, not a nil pointer that is followed.
@Suite struct LibraryFailureTests {
    @Test func anHMACThatCouldNotBeFetchedIsAnError() async {
        // In a process of its own: without the check it would be stopped by a signal.
        await #expect(processExitsWith: .success) {
            let template = HMAC.Template(context: nil, failure: "no HMAC here")
            #expect(throws: CryptographyError.library("no HMAC here")) { try template.copy() }
        }
    }
}
