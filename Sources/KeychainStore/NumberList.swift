/// Numbers of rows in rising order. What was removed may stay in it for a while: whoever reads looks whether a row is still
/// what it is looked up for. So that neither adding nor removing one moves all others.
struct NumberList {
    private(set) var numbers: [Int64] = []
    private var staleCount = 0

    /// True when nothing that counts is in it.
    var isEmpty: Bool { staleCount >= numbers.count }

    mutating func insert(_ number: Int64) {
        guard let last = numbers.last, last >= number else {
            numbers.append(number)
            return
        }
        let place = firstIndex(atLeast: number)
        if numbers[place] == number {
            staleCount -= 1
        } else {
            numbers.insert(number, at: place)
        }
    }

    /// `isLive` says whether a number still belongs here; it does not for the one that goes.
    mutating func remove(_ number: Int64, isLive: (Int64) -> Bool) {
        staleCount += 1
        guard staleCount * 2 > numbers.count else { return }
        numbers.removeAll { !isLive($0) }
        staleCount = 0
    }

    /// The place of the first number that is not below `number`.
    func firstIndex(atLeast number: Int64) -> Int {
        var low = 0
        var high = numbers.count
        while low < high {
            let middle = (low + high) / 2
            if numbers[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
