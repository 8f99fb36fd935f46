import KeychainModel
import LinuxSystem
import Security
import Testing

@testable import KeychainStore

/// Numbers 58, 59, 95 to 98, 101, 126, 131 and 132: a database, or items in it, that are not what was written.
extension Checklist {
    static let damage: [ChecklistRow] = [
        ChecklistRow(58, "a garbage database is replaced by an empty, usable one", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.replaceWithGarbage()
            try home.calling {
                _ = find(both[0])
                for item in both {
                    #expect(find(item).status == -25300)
                    #expect(add(item, secret("y")) == 0)
                    #expect(find(item, returnData).text == "y")
                }
            }
            // Kept beside the new one, with every byte.
            let kept = try FileManager.default.contentsOfDirectory(atPath: home.directory).filter {
                $0.hasPrefix("keychain.sqlite.damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
            }
            #expect(kept.count == 1)
            for name in kept {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: home.directory + "/" + name))
                #expect(bytes == DatabaseGarbage.bytes)
            }
        },
        ChecklistRow(59, "after the file could not be opened, it is served again", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.whileUnreachable { try home.calling { _ = find(both[0]) } }
            try home.calling {
                for item in both {
                    #expect(find(item, returnData).text == "x")
                    #expect(add(item, secret("y")) == -25299)
                    #expect(delete(item) == 0)
                }
            }
        },
        ChecklistRow(95, "an item of garbage is -25300, and goes; here it is kept aside", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.garble()
            try home.calling {
                for item in both {
                    let found = find(item, returnData)
                    #expect(found.status == -25300)
                    #expect(found.object == nil)
                }
            }
            #expect(try home.number("SELECT (SELECT count(*) FROM genp) + (SELECT count(*) FROM inet)") == 0)
            #expect(try home.number("SELECT count(*) FROM set_aside") == 2)
        },
        ChecklistRow(96, "an add over an item of garbage works", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.garble()
            try home.calling {
                for item in both {
                    #expect(add(item, secret("y")) == 0)
                    #expect(find(item, returnData).text == "y")
                    #expect(add(item, secret("z")) == -25299)
                }
            }
        },
        ChecklistRow(97, "an update of another item onto the key of one of garbage works", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            let other: Attributes = [kSecAttrAccount: "other"]
            try home.calling {
                for item in both {
                    #expect(add(item, secret("x")) == 0)
                    #expect(add(item + other, secret("y")) == 0)
                    #expect(update(item + other, [kSecAttrAccount: "me"]) == -25299)
                }
            }
            try home.garble(" WHERE number = 1")
            try home.calling {
                for item in both {
                    #expect(update(item + other, [kSecAttrAccount: "me"]) == 0)
                    #expect(find(item, returnData).text == "y")
                    #expect(find(item + other).status == -25300)
                }
            }
        },
        ChecklistRow(98, "an update of an item of garbage is -25300", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.garble()
            try home.calling {
                for item in both {
                    #expect(update(item, secret("y")) == -25300)
                    #expect(find(item).status == -25300)
                }
            }
        },
        ChecklistRow(101, "a file that cannot be opened is -25291 to add and find", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            try home.whileUnreachable {
                try home.calling {
                    for item in both {
                        let found = find(item, returnData)
                        #expect(found.status == -25291)
                        #expect(found.object == nil)
                        #expect(add(item + [kSecAttrAccount: "new"], secret("y")) == -25291)
                        #expect(update(item, secret("y")) == -25291)
                        #expect(delete(item) == -25291)
                    }
                }
            }
            try home.calling { for item in both { #expect(find(item, returnData).text == "x") } }
        },
        ChecklistRow(126, "a corrupt file is -25291 once, then there is a new database", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            let calls: [@Sendable (Attributes) -> OSStatus] = [
                { find($0, returnData).status }, { add($0, secret("y")) }, { update($0, secret("y")) }, { delete($0) },
            ]
            for call in calls {
                try home.replaceWithGarbage()
                try home.calling {
                    #expect(call(both[0]) == -25291)
                    #expect(find(both[0]).status == -25300)
                    #expect(add(both[1], secret("y")) == 0)
                }
            }
        },
        ChecklistRow(131, "an attribute query never touches the secret", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            try home.calling { for item in both { #expect(add(item, secret("x")) == 0) } }
            for table in ["genp", "inet"] { try home.change("UPDATE \(table) SET secret = zeroblob(length(secret))") }
            try home.calling {
                for item in both {
                    #expect(find(item, returnAttributes).attributes?["acct"] as? String == "me")
                    #expect(find(item).status == 0)
                    #expect(find(item, returnData).status == -25300)
                }
            }
        },
        ChecklistRow(132, "any changed byte of a stored item makes it undecodable", needs: [.database]) { home in
            let home = try #require(home as? any DatabaseHome)
            var changes = [
                "synchronizable = 1", "accessibility = accessibility + 1", "generation = generation + 1",
                "tombstone = 1", "access_group = access_group || 'x'", "secret = NULL",
            ]
            try home.calling { #expect(add(both[0], secret("x")) == 0) }
            for (column, step) in [
                ("identifier", 3), ("primary_key", 3), ("digest_acct", 3), ("digest_svce", 3), ("metadata", 11),
                ("secret", 11),
            ] {
                let size = try #require(try home.number("SELECT length(\(column)) FROM genp"))
                for place in stride(from: 1, through: Int(size), by: step) {
                    changes.append(
                        """
                        \(column) = CAST(substr(\(column), 1, \(place - 1)) || CASE substr(\(column), \(place), 1) \
                        WHEN x'41' THEN x'42' ELSE x'41' END || substr(\(column), \(place + 1)) AS BLOB)
                        """)
                }
            }
            #expect(changes.count > 40)
            for change in changes {
                try home.change("UPDATE genp SET " + change)
                // Digests are made of what is sealed: where they alone are wrong, the item may be found by it or not at all.
                let isDigest = change.hasPrefix("digest") || change.hasPrefix("primary_key")
                try home.calling {
                    for kind in [false, kSecAttrSynchronizableAny] as [Any] {
                        let found = find(both[0], [kSecAttrSynchronizable: kind, kSecReturnData: true])
                        #expect(found.status == -25300 || (isDigest && found.text == "x"), "\(change)")
                    }
                    try home.change("DELETE FROM genp")
                    #expect(add(both[0], secret("x")) == 0)
                }
            }
            try home.calling { #expect(find(both[0], returnData).text == "x") }
        },
    ]
}

/// What is put in the place of a database.
enum DatabaseGarbage {
    static let bytes = Data("no database at all. ".utf8) + Data(repeating: 7, count: 5000)
}

/// A home whose database a test can get at.
protocol DatabaseHome: ChecklistHome {
    var database: FilePath { get }
}

extension DatabaseHome {
    var directory: String { database.parent.description }

    private func connection() throws -> SQLiteConnection {
        try SQLiteConnection(
            database, .writing, identity: DatabaseFile.Identity(device: 0, inode: 0), busyTimeout: 10_000)
    }

    func change(_ statement: String) throws { try connection().execute(statement) }
    func number(_ query: String) throws -> Int64? { try connection().number(query) }

    /// Makes the attributes of items what cannot be opened.
    func garble(_ condition: String = "") throws {
        for table in ["genp", "inet"] { try change("UPDATE \(table) SET metadata = zeroblob(200)" + condition) }
    }

    /// A new file in the place of the database: no lock on the old one is touched.
    func replaceWithGarbage() throws {
        try change("PRAGMA wal_checkpoint(TRUNCATE)")
        let path = database.description
        try DatabaseGarbage.bytes.write(to: URL(fileURLWithPath: path + ".new"))
        #expect(rename(path + ".new", path) == 0)
        for ending in ["-wal", "-shm"] { unlink(path + ending) }
    }

    /// Runs `body` while a directory lies in the place of the database.
    func whileUnreachable(_ body: () throws -> Void) throws {
        try change("PRAGMA wal_checkpoint(TRUNCATE)")
        let path = database.description
        #expect(rename(path, path + ".elsewhere") == 0 && mkdir(path, 0o700) == 0)
        try body()
        #expect(rmdir(path) == 0 && rename(path + ".elsewhere", path) == 0)
    }
}
