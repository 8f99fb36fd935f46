import LinuxSystem

extension FilePath {
    /// The path as it stands in a line of text: as it is where nothing in it can harm, else quoted and escaped.
    ///
    /// A path that itself begins with a quote is quoted too, so that the two cannot be confused.
    var displayed: String {
        var isPlain = bytes.first != UInt8(ascii: "'") && !bytes.isEmpty
        for byte in bytes where byte < 0x20 || byte >= 0x7F {
            isPlain = false
            break
        }
        if isPlain { return String(decoding: bytes, as: UTF8.self) }
        let quoted = self.quoted
        guard let text, !bytes.isEmpty, bytes.first != UInt8(ascii: "'"), quoted.dropFirst().dropLast() == text else {
            return quoted
        }
        return text
    }
}
