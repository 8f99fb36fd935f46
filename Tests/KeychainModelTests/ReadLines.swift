import Glibc

struct CannotRead: Error { let path: String }

/// The lines of a text file of this repository.
func readLines(_ path: String) throws -> [String] {
    guard let file = fopen(path, "r") else { throw CannotRead(path: path) }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
}
