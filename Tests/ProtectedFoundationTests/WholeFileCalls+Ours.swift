import ProtectedFoundation

/// The same source twice: see `WholeFileCall`.
extension WholeFileCall {
    static let ofOurs: [WholeFileCall] = reading + writing + (Older.self as any OlderCalls.Type).calls

    private static let reading: [WholeFileCall] = [
        WholeFileCall("Data(contentsOf:)") { try Data(contentsOf: $0).encoded },
        WholeFileCall("Data(contentsOf:options: mappedIfSafe)") {
            try Data(contentsOf: $0, options: .mappedIfSafe).encoded
        },
        WholeFileCall("Data(contentsOf:options: alwaysMapped)") {
            try Data(contentsOf: $0, options: [.alwaysMapped, .uncached]).encoded
        },
        WholeFileCall("String(contentsOf:encoding:)") { try String(contentsOf: $0, encoding: .utf8) },
        WholeFileCall("String(contentsOf:encoding: utf16)") { try String(contentsOf: $0, encoding: .utf16) },
        WholeFileCall("String(contentsOfFile:encoding:)") { try String(contentsOfFile: $0.path, encoding: .utf8) },
        WholeFileCall("String(contentsOfFile:encoding: isoLatin1)") {
            try String(contentsOfFile: $0.path, encoding: .isoLatin1)
        },
        WholeFileCall("String(contentsOf:usedEncoding:)") {
            var encoding = String.Encoding.ascii
            return try String(contentsOf: $0, usedEncoding: &encoding) + " \(encoding.rawValue)"
        },
        WholeFileCall("String(contentsOfFile:usedEncoding:)") {
            var encoding = String.Encoding.ascii
            return try String(contentsOfFile: $0.path, usedEncoding: &encoding) + " \(encoding.rawValue)"
        },
        WholeFileCall("NSData(contentsOf:)") { NSData(contentsOf: $0).map { ($0 as Data).encoded } },
        WholeFileCall("NSData(contentsOfFile:)") { NSData(contentsOfFile: $0.path).map { ($0 as Data).encoded } },
        WholeFileCall("NSData(contentsOf:options:)") { (try NSData(contentsOf: $0, options: []) as Data).encoded },
        WholeFileCall("NSData(contentsOfFile:options:)") {
            (try NSData(contentsOfFile: $0.path, options: .mappedIfSafe) as Data).encoded
        },
        WholeFileCall("NSString(contentsOf:encoding:)") {
            try NSString(contentsOf: $0, encoding: String.Encoding.utf8.rawValue) as String
        },
        WholeFileCall("NSString(contentsOfFile:encoding:)") {
            try NSString(contentsOfFile: $0.path, encoding: String.Encoding.utf8.rawValue) as String
        },
        WholeFileCall("NSString(contentsOf:usedEncoding:)") {
            var encoding: UInt = 0
            return try NSString(contentsOf: $0, usedEncoding: &encoding) as String + " \(encoding)"
        },
        WholeFileCall("NSString(contentsOfFile:usedEncoding:)") {
            try NSString(contentsOfFile: $0.path, usedEncoding: nil) as String
        },
        WholeFileCall("NSArray(contentsOf:error:)") { try NSArray(contentsOf: $0, error: ()).description },
        WholeFileCall("CharacterSet(contentsOfFile:)", demands: "a character set") {
            CharacterSet(contentsOfFile: $0.path).map { "\($0.contains("a"))" }
        },
        WholeFileCall("NSCharacterSet(contentsOfFile:)", demands: "a character set") {
            NSCharacterSet(contentsOfFile: $0.path).map { "\($0.characterIsMember(97))" }
        },
        WholeFileCall("InputStream(url:)", refusesComplete: true) { InputStream(url: $0).map(\.everything) },
        WholeFileCall("InputStream(fileAtPath:)", refusesComplete: true) {
            InputStream(fileAtPath: $0.path).map(\.everything)
        },
    ]

    private static let writing: [WholeFileCall] = [
        WholeFileCall("Data.write(to:)", .writes) { try written { try sample.write(to: $0) }($0) },
        WholeFileCall("Data.write(to:options: atomic)", .writes) {
            try written { try sample.write(to: $0, options: .atomic) }($0)
        },
        WholeFileCall("Data.write(to:options: withoutOverwriting)", .creates) {
            try written { try sample.write(to: $0, options: .withoutOverwriting) }($0)
        },
        WholeFileCall("String.write(to:atomically: true)", .writes) {
            try written { try text.write(to: $0, atomically: true, encoding: .utf8) }($0)
        },
        WholeFileCall("String.write(to:atomically: false)", .writes) {
            try written { try text.write(to: $0, atomically: false, encoding: .utf16LittleEndian) }($0)
        },
        WholeFileCall("String.write(toFile:atomically:)", .writes) {
            try written { try text.write(toFile: $0.path, atomically: true, encoding: .utf8) }($0)
        },
        WholeFileCall("Substring.write(toFile:atomically:)", .writes) {
            try written { try text.dropFirst().write(toFile: $0.path, atomically: false, encoding: .utf8) }($0)
        },
        WholeFileCall("String.write in an encoding without the characters", .cannotWrite) {
            try written { try text.write(to: $0, atomically: true, encoding: .ascii) }($0)
        },
        WholeFileCall("NSData.write(to:options:)", .writes) {
            try written { try NSData(data: sample).write(to: $0, options: []) }($0)
        },
        WholeFileCall("NSData.write(to:options: atomic)", .writes) {
            try written { try NSMutableData(data: sample).write(to: $0, options: .atomic) }($0)
        },
        WholeFileCall("NSData.write(toFile:options: withoutOverwriting)", .creates) {
            try written { try NSData(data: sample).write(toFile: $0.path, options: .withoutOverwriting) }($0)
        },
        WholeFileCall("NSData.write(to:atomically:)", .writes) {
            NSData(data: sample).write(to: $0, atomically: true) ? "written" : nil
        },
        WholeFileCall("NSData.write(toFile:atomically:)", .writes) {
            NSData(data: sample).write(toFile: $0.path, atomically: false) ? "written" : nil
        },
        WholeFileCall("NSString.write(to:atomically:encoding:)", .writes) {
            try written { try NSString(string: text).write(to: $0, atomically: true, encoding: 4) }($0)
        },
        WholeFileCall("NSString.write(toFile:atomically:encoding:)", .writes) {
            try written { try NSString(string: text).write(toFile: $0.path, atomically: false, encoding: 4) }($0)
        },
        WholeFileCall("NSArray.write(to:)", .writes) {
            try written { try NSArray(array: [1, "b"]).write(to: $0) }($0)
        },
        WholeFileCall("OutputStream(url:append: false)", .writes, refusesProtected: true) {
            OutputStream(url: $0, append: false).map { $0.writing(sample) }
        },
        WholeFileCall("OutputStream(toFileAtPath:append: true)", .writes, refusesProtected: true) {
            OutputStream(toFileAtPath: $0.path, append: true).map { $0.writing(sample) }
        },
    ]
}

/// Calls that are deprecated, and so must be called by something that is.
private enum Older: OlderCalls {
    @available(*, deprecated)
    static var calls: [WholeFileCall] {
        [
            WholeFileCall("String(contentsOf:)") { try String(contentsOf: $0) },
            WholeFileCall("String(contentsOfFile:)") { try String(contentsOfFile: $0.path) },
            WholeFileCall("NSArray(contentsOf:)") { NSArray(contentsOf: $0)?.description },
            WholeFileCall("NSArray(contentsOfFile:)") { NSArray(contentsOfFile: $0.path)?.description },
            WholeFileCall("NSMutableArray(contentsOf:)") { NSMutableArray(contentsOf: $0)?.description },
            WholeFileCall("NSDictionary(contentsOf:)") { NSDictionary(contentsOf: $0)?.description.sortedLines },
            WholeFileCall("NSDictionary(contentsOfFile:)") {
                NSDictionary(contentsOfFile: $0.path)?.description.sortedLines
            },
            WholeFileCall("NSKeyedUnarchiver.unarchiveObject(withFile:)", demands: "an archive") {
                NSKeyedUnarchiver.unarchiveObject(withFile: $0.path).map { "\($0)" }
            },
            WholeFileCall("NSArray.write(to:atomically:)", .writes) {
                NSArray(array: [1, "b"]).write(to: $0, atomically: false) ? "written" : nil
            },
            WholeFileCall("NSArray.write(toFile:atomically:)", .writes) {
                NSArray(array: [1, "b"]).write(toFile: $0.path, atomically: true) ? "written" : nil
            },
            WholeFileCall("NSDictionary.write(to:atomically:)", .writes) {
                NSDictionary(object: 1, forKey: NSString(string: "a")).write(to: $0, atomically: true) ? "written" : nil
            },
            WholeFileCall("NSDictionary.write(toFile:atomically:)", .writes) {
                NSDictionary(object: 1, forKey: NSString(string: "a")).write(toFile: $0.path, atomically: false)
                    ? "written" : nil
            },
            WholeFileCall("NSKeyedArchiver.archiveRootObject(_:toFile:)", .writes) {
                NSKeyedArchiver.archiveRootObject(NSString(string: "archived"), toFile: $0.path) ? "written" : nil
            },
        ]
    }
}
