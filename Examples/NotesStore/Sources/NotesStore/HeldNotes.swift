/// Notes that are held in memory between an unlock and the next lock.
///
/// Reading a note takes a while, and the lock may come meanwhile: whoever begins to read remembers the ``period``, and what
/// was read in one that is over is not held any more.
struct HeldNotes {
    private var texts: [String: String] = [:]
    /// Another number after each ``close()``.
    private(set) var period = 0

    var count: Int { texts.count }

    subscript(_ title: String) -> String? { texts[title] }

    /// Holds a text that was read or written from that period on.
    mutating func hold(_ text: String, as title: String, from period: Int) {
        guard period == self.period else { return }
        texts[title] = text
    }

    mutating func drop(_ title: String) { texts[title] = nil }

    /// Lets go of all. Returns how many there were.
    mutating func close() -> Int {
        defer { texts = [:] }
        period += 1
        return texts.count
    }
}
