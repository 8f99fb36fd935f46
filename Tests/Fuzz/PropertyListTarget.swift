@testable import AgentServer

/// Property lists beside executables: an identifier that is found is one, and stands in a whole list alone.
@c(LLVMFuzzerTestOneInput) public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    guard let found = try? PropertyListFile.bundleIdentifier(in: bytes) else { return 0 }
    precondition(found.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && !found.isEmpty && found != "candado")
    // Without its last tag it is cut off, whatever stands behind that.
    let end = Array("</plist".utf8)
    let last = bytes.indices.last { bytes[$0...].starts(with: end) }
    precondition((try? PropertyListFile.bundleIdentifier(in: Array(bytes.prefix(last ?? 0)))) == nil)
    for more in ["<", "x", "<plist/>", "&amp;", "</plist>"] {
        precondition((try? PropertyListFile.bundleIdentifier(in: bytes + Array(more.utf8))) == nil)
    }
    return 0
}
