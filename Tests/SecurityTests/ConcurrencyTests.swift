import Keychain
import Security
import Testing

@Suite struct ConcurrencyTests {
    /// Hundreds of threads on a few items: only documented numbers, and every result is whole.
    @Test func hundredsOfThreadsGetWholeAnswers() throws {
        let home = MemoryHome()
        let keychain = try home.calling { try Keychain.currentService() }
        let problems = concurrently(200) { thread in
            Keychain.$given.withValue(keychain) { () -> [String] in
                var problems: [String] = []
                for round in 0..<25 {
                    let account = "\((thread + round) % 10)"
                    let text = String(repeating: "\(thread) ", count: 1 + round)
                    let item = generic(account)
                    let status: OSStatus
                    let allowed: Set<OSStatus>
                    switch (thread + round) % 5 {
                    case 0: (status, allowed) = (add(item, secret(text)), [errSecSuccess, errSecDuplicateItem])
                    case 1: (status, allowed) = (update(item, secret(text)), [errSecSuccess, errSecItemNotFound])
                    case 2: (status, allowed) = (delete(item), [errSecSuccess, errSecItemNotFound])
                    default:
                        let found = find(item, returnData + returnAttributes)
                        (status, allowed) = (found.status, [errSecSuccess, errSecItemNotFound])
                        if status == errSecSuccess {
                            let data = found.attributes?["v_Data"] as? Data ?? Data()
                            let words = String(decoding: data, as: UTF8.self).split(separator: " ")
                            if words.isEmpty || Set(words).count != 1 { problems.append("a secret of two writers") }
                            if found.attributes?["acct"] as? String != account { problems.append("another's") }
                        }
                    }
                    if !allowed.contains(status) { problems.append("\(status)") }
                }
                return problems
            }
        }
        #expect(problems.count == 200)
        #expect(problems.joined().isEmpty)
        try home.calling { #expect(count(kSecClassGenericPassword) <= 10) }
    }

    @Test func ofManyThatAddTheSameOneSucceeds() throws {
        let home = MemoryHome()
        let keychain = try home.calling { try Keychain.currentService() }
        for round in 0..<20 {
            let statuses = concurrently(50) { thread in
                Keychain.$given.withValue(keychain) { add(generic("\(round)"), secret("\(thread)")) }
            }
            #expect(statuses.filter { $0 == errSecSuccess }.count == 1)
            #expect(statuses.filter { $0 == errSecDuplicateItem }.count == 49)
        }
    }
}
