// swift-format-ignore-file
// What becomes of a call when its file imports Foundation beside ProtectedFoundation. Each line that ends with "silent"
// compiles and means Foundation's call; every other one is an error there. scripts/test-packages puts the imports before it.

func data(_ url: URL) throws { _ = try Data(contentsOf: url) }
func mapped(_ url: URL) throws { _ = try Data(contentsOf: url, options: .mappedIfSafe) }
func write(_ data: Data, _ url: URL) throws { try data.write(to: url) }
func protect(_ data: Data, _ url: URL) throws { try data.write(to: url, options: .completeFileProtection) }
func text(_ url: URL) throws { _ = try String(contentsOf: url, encoding: .utf8) }
func text(_ path: String) throws { _ = try String(contentsOfFile: path, encoding: .utf8) }
func guessed(_ url: URL, _ encoding: inout String.Encoding) throws { _ = try String(contentsOf: url, usedEncoding: &encoding) }
func guessed(_ path: String, _ encoding: inout String.Encoding) throws { _ = try String(contentsOfFile: path, usedEncoding: &encoding) }
func write(_ text: String, _ url: URL) throws { try text.write(to: url, atomically: true, encoding: .utf8) }
func write(_ text: String, _ path: String) throws { try text.write(toFile: path, atomically: true, encoding: .utf8) }
func write(_ data: NSData, _ url: URL) throws { try data.write(to: url, options: []) }
func write(_ data: NSData, _ path: String) throws { try data.write(toFile: path, options: []) }
func atomic(_ data: NSData, _ url: URL) { _ = data.write(to: url, atomically: true) }
func atomic(_ data: NSData, _ path: String) { _ = data.write(toFile: path, atomically: true) }
func write(_ text: NSString, _ url: URL) throws { try text.write(to: url, atomically: true, encoding: 4) }
func write(_ text: NSString, _ path: String) throws { try text.write(toFile: path, atomically: true, encoding: 4) }
func write(_ list: NSArray, _ url: URL) throws { try list.write(to: url) }
func write(_ list: NSDictionary, _ url: URL) { list.write(to: url, atomically: true) }
func archive(_ path: String) { _ = NSKeyedArchiver.archiveRootObject(1, toFile: path) }
func unarchive(_ path: String) { _ = NSKeyedUnarchiver.unarchiveObject(withFile: path) }
func characters(_ path: String) { _ = CharacterSet(contentsOfFile: path) }
func objectCharacters(_ path: String) { _ = NSCharacterSet(contentsOfFile: path) }
func object(_ url: URL) { _ = NSData(contentsOf: url) }  // silent
func object(_ path: String) { _ = NSData(contentsOfFile: path) }  // silent
func objectWithOptions(_ url: URL) throws { _ = try NSData(contentsOf: url, options: []) }  // silent
func objectWithOptions(_ path: String) throws { _ = try NSData(contentsOfFile: path, options: []) }  // silent
func objectText(_ url: URL) throws { _ = try NSString(contentsOf: url, encoding: 4) }
func objectText(_ path: String) throws { _ = try NSString(contentsOfFile: path, encoding: 4) }
func list(_ url: URL) throws { _ = try NSArray(contentsOf: url, error: ()) }
func dictionary(_ url: URL) { _ = NSDictionary(contentsOf: url) }
func input(_ url: URL) { _ = InputStream(url: url) }  // silent
func input(_ path: String) { _ = InputStream(fileAtPath: path) }
func output(_ url: URL) { _ = OutputStream(url: url, append: true) }  // silent
func output(_ path: String) { _ = OutputStream(toFileAtPath: path, append: true) }
func reading(_ url: URL) throws { _ = try FileHandle(forReadingFrom: url) }
func writing(_ url: URL) throws { _ = try FileHandle(forWritingTo: url) }
func updating(_ url: URL) throws { _ = try FileHandle(forUpdating: url) }
func reading(_ path: String) { _ = FileHandle(forReadingAtPath: path) }
func writing(_ path: String) { _ = FileHandle(forWritingAtPath: path) }
func updating(_ path: String) { _ = FileHandle(forUpdatingAtPath: path) }
func write(_ handle: FileHandle, _ data: Data) throws { try handle.write(contentsOf: data) }
func read(_ handle: FileHandle) throws { _ = try handle.readToEnd() }
func contents(_ path: String) { _ = FileManager.default.contents(atPath: path) }
func create(_ path: String) { _ = FileManager.default.createFile(atPath: path, contents: nil) }
func createWith(_ path: String) { _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.protectionKey: FileProtectionType.complete]) }
func set(_ path: String) throws { try FileManager.default.setAttributes([.protectionKey: FileProtectionType.complete], ofItemAtPath: path) }
func attributes(_ path: String) throws { _ = try FileManager.default.attributesOfItem(atPath: path) }
func copy(_ url: URL, _ other: URL) throws { try FileManager.default.copyItem(at: url, to: other) }
func move(_ url: URL, _ other: URL) throws { try FileManager.default.moveItem(at: url, to: other) }
func replace(_ url: URL, _ other: URL) throws { _ = try FileManager.default.replaceItemAt(url, withItemAt: other) }
func directory(_ url: URL) throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
func values(_ url: URL) throws { _ = try url.resourceValues(forKeys: [.fileSizeKey]) }
