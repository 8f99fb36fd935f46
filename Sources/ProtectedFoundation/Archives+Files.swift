import Foundation
import PlainFoundation

extension NSKeyedArchiver {
    /// Writes an archive, protected when what it replaces or the directory has a class. False when nothing was written.
    @available(*, deprecated)
    public class func archiveRootObject(_ rootObject: Any, toFile path: String) -> Bool {
        // Foundation's call takes a NUL for the end of the path here, and for a part of the name there.
        guard !path.utf8.contains(0) else { return false }
        let data = NSKeyedArchiver.archivedData(withRootObject: rootObject)
        var isWritten = true
        do {
            try WholeFile(URL(fileURLWithPath: path)).write(data, .atomic, like: .archive) {
                isWritten = PlainFoundation.archive(rootObject, toFile: path)
            }
        } catch {
            return false
        }
        return isWritten
    }
}

extension NSKeyedUnarchiver {
    /// Reads an archive. Nil when the file cannot be read, also when it is locked.
    @available(*, deprecated)
    public class func unarchiveObject(withFile path: String) -> Any? {
        let file = WholeFile(URL(fileURLWithPath: path))
        if file.isProtected || file.isHidden {
            guard let data = try? file.contents() else { return nil }
            return NSKeyedUnarchiver.unarchiveObject(with: data)
        }
        return PlainFoundation.unarchive(file: path)
    }
}

extension CharacterSet {
    /// Reads the bitmap of a set. Nil when the file cannot be read, also when it is locked.
    public init?(contentsOfFile file: String) {
        let place = WholeFile(URL(fileURLWithPath: file))
        if place.isProtected || place.isHidden {
            guard let data = try? place.contents() else { return nil }
            self.init(bitmapRepresentation: data)
        } else {
            guard let set = PlainFoundation.characters(ofFile: file) else { return nil }
            self = set
        }
    }
}

extension NSCharacterSet {
    /// Reads the bitmap of a set. Nil when the file cannot be read, also when it is locked.
    public convenience init?(contentsOfFile fName: String) {
        guard let data = try? Data(contentsOf: URL(fileURLWithPath: fName)) else { return nil }
        self.init(bitmapRepresentation: data)
    }
}
