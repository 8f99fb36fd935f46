import Glibc
import SecretMemory
import Testing

@testable import Cryptography

@Suite struct ForkedCipherTests {
    /// A child inherits the pooled contexts and the random bytes in them. Were it to use those, parent and child would
    /// seal under the same nonces; and with the same file key, which a child can unwrap anew, that gives plaintext
    /// away.
    @Test func aChildDoesNotSealUnderItsParentsNonces() async {
        await #expect(processExitsWith: .success) {
            var warm = try ChunkCipher(key: try SecretBytes.random(count: 32))
            _ = try warm.seal([1])
            discard(warm)
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let child = fork()
            if child == 0 {
                var nonces = nonces()
                let written = write(ends[1], &nonces, nonces.count)
                exit(written == nonces.count && !nonces.isEmpty ? 0 : 1)
            }
            let mine = nonces()
            var theirs = [UInt8](repeating: 0, count: mine.count)
            #expect(read(ends[0], &theirs, theirs.count) == mine.count)
            var status: Int32 = 0
            waitpid(child, &status, 0)
            #expect(status == 0)
            #expect(mine.count == 10 * ChunkCipher.nonceSize)
            for start in stride(from: 0, to: mine.count, by: ChunkCipher.nonceSize) {
                #expect(
                    mine[start..<(start + ChunkCipher.nonceSize)] != theirs[start..<(start + ChunkCipher.nonceSize)])
            }
        }
    }
}

private func discard(_ cipher: consuming ChunkCipher) {}

/// The nonces of ten chunks.
private func nonces() -> [UInt8] {
    do {
        var cipher = try ChunkCipher(key: try SecretBytes.random(count: 32))
        var result: [UInt8] = []
        for _ in 0..<10 { result += try cipher.seal([1]).seal.prefix(ChunkCipher.nonceSize) }
        return result
    } catch {
        return []
    }
}
