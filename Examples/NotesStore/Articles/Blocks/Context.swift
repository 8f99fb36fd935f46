import FileProtection

// What the blocks of code in the library's articles use and do not declare: scripts/test-examples compiles each of them with
// this file, as the body of an asynchronous function that has a `protection`.

let attachment: FilePath = "attachment"
let photo: FilePath = "photo"
let report: FilePath = "report"
let thumbnail: [UInt8] = []

@MainActor var isLocked = true

func unpack(_ source: FilePath, into file: ProtectedFile) async throws {}
func show(_ content: [UInt8]) async throws {}
func ask(_ question: String) async -> Bool { true }
func play(_ chunk: [UInt8]) {}
func react(to event: LockEvent) {}
func saveDrafts(within seconds: Double) {}
func dropWhatIsShown() {}
func reload() {}

/// A source of bytes that an app may have.
struct Download {
    var chunks: AsyncStream<[UInt8]> { AsyncStream { $0.finish() } }
}
let download = Download()
