import Keychain
import KeychainModel

/// Which items a command line means.
struct ItemSelection: Sendable {
    /// Those that may match.
    let classes: [ItemClass]
    /// Class and access group apart.
    private(set) var attributes: ItemDictionary = [:]
    /// Nil: of all groups.
    let accessGroup: String?
    /// True when nothing names an item: an access group, an accessibility and the kind of synchronization name none.
    var isEverything: Bool { attributes.keys.allSatisfy { $0 == "pdmn" || $0 == "sync" } }

    /// Reads the options that name items. Throws usage errors.
    init(_ invocation: Invocation) throws(UsageError) {
        let isServer = [.server, .internetProtocol, .port, .path].contains { invocation.has($0) }
        if invocation.has(.service) {
            classes = [.genericPassword]
        } else {
            classes = isServer ? [.internetPassword] : [.genericPassword, .internetPassword]
        }
        if invocation.has(.allGroups) {
            accessGroup = nil
        } else {
            accessGroup = try invocation.text(.group) ?? CommandTable.defaultAccessGroup
        }
        for (name, key) in [
            (OptionName.service, "svce"), (.server, "srvr"), (.account, "acct"), (.path, "path"), (.label, "labl"),
        ] {
            if let text = try invocation.text(name) { attributes[key] = .text(text) }
        }
        if let number = invocation.number(.port) {
            guard UInt16(exactly: number) != nil else { throw UsageError("a port is a number up to 65535") }
            attributes["port"] = .number(Int64(number))
        }
        if let known = try invocation.text(.internetProtocol).flatMap({ InternetProtocol(name: $0) }) {
            attributes["ptcl"] = .text(known.rawValue)
        }
        if let word = try invocation.text(.accessible).flatMap({ Accessibility(name: $0) }) {
            attributes["pdmn"] = .text(word.rawValue)
        }
        if invocation.has(.synchronizable) { attributes["sync"] = .boolean(true) }
        if invocation.has(.local) { attributes["sync"] = .boolean(false) }
    }

    /// The item that is to be added. Throws usage errors where its name is not whole.
    func newItem(_ invocation: Invocation) throws(UsageError) -> ItemDictionary {
        guard let itemClass = classes.first, classes.count == 1, invocation.has(.service) || invocation.has(.server)
        else {
            throw UsageError("'keychain add' needs --service or --server")
        }
        guard invocation.has(.account) else { throw UsageError("'keychain add' needs --account") }
        var item = attributes
        item["class"] = .text(itemClass.rawValue)
        if let accessGroup { item["agrp"] = .text(accessGroup) }
        if let text = try invocation.text(.comment) { item["icmt"] = .text(text) }
        return item
    }

    /// What finds them, of one class.
    func query(_ itemClass: ItemClass) -> ItemDictionary {
        var query = attributes
        query["class"] = .text(itemClass.rawValue)
        if let accessGroup { query["agrp"] = .text(accessGroup) }
        // A query that says nothing means items of both kinds, on this side.
        if query["sync"] == nil { query["sync"] = .text("syna") }
        return query
    }

    /// What lists them, locked ones too, each as it comes.
    func list(
        _ service: any KeychainService, each: (ItemResult) throws(KeychainError) -> Void
    ) throws(KeychainError) {
        for itemClass in classes {
            do throws(KeychainError) {
                try service.perform(.list(query(itemClass)), each: each)
            } catch {
                guard error.code == .itemNotFound else { throw error }
            }
        }
    }

    /// How many there are, locked ones included.
    func count(_ service: any KeychainService) throws(KeychainError) -> Int {
        var count = 0
        try list(service) { (_) throws(KeychainError) in count += 1 }
        return count
    }

    /// Throws `locked` when one item that matches cannot be opened now: a change of several classes begins only where all of
    /// it can be done.
    func requireReadable(_ service: any KeychainService) throws(KeychainError) {
        guard classes.count > 1 else { return }
        for itemClass in classes {
            var query = query(itemClass)
            query["r_Attributes"] = .boolean(true)
            query["m_Limit"] = .text("m_LimitAll")
            do throws(KeychainError) {
                try service.perform(.find(query)) { (_) throws(KeychainError) in }
            } catch {
                guard error.code == .itemNotFound else { throw error }
            }
        }
    }

    /// Changes what matches, one class after the other, and returns how many. An error after a change says how many were:
    /// `done` is the word for it.
    func change(
        _ service: any KeychainService, _ done: String, _ request: (ItemDictionary) -> KeychainRequest
    ) throws -> Int {
        var count = 0
        for itemClass in classes {
            do throws(KeychainError) {
                count += try service.perform(request(query(itemClass))).answer.count
            } catch {
                if error.code == .itemNotFound { continue }
                guard count > 0 else { throw error }
                var tally = ExitTally()
                tally.countDone()
                tally.countFailure(ExitStatus(error.code))
                throw CommandFailure(
                    tally.status, "\(count) \(done), and no others: \(Hints.sentence(for: error))",
                    hints: Hints.advice(for: error))
            }
        }
        return count
    }

    /// The one that matches, with its attributes. Throws `itemNotFound`, and a failure where several match.
    func theOnly(_ service: any KeychainService) throws -> ItemResult {
        var found: [ItemResult] = []
        for itemClass in classes {
            var query = query(itemClass)
            query["r_Attributes"] = .boolean(true)
            query["m_Limit"] = .number(2)
            do throws(KeychainError) {
                found += try service.perform(.find(query)).results
            } catch {
                guard error.code == .itemNotFound else { throw error }
            }
        }
        guard let item = found.first else { throw Self.nothing }
        guard found.count == 1 else {
            throw CommandFailure(
                .failed, "\(try count(service)) items match, and one is meant",
                hints: [
                    "'candado keychain list' shows them; name one by --service or --server, --account, --label, --group, --synchronizable or --local"
                ])
        }
        return item
    }

    /// What is said where nothing matches.
    static let nothing = KeychainError(.itemNotFound, "no item matches")
}
