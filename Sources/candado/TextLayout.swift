/// Lays out text for terminals.
enum TextLayout {
    /// Breaks a paragraph at spaces into lines of at most `width` characters. A longer word stands alone.
    static func wrap(_ paragraph: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in paragraph.split(separator: " ") {
            if line.isEmpty {
                line = String(word)
            } else if line.count + 1 + word.count <= width {
                line += " " + word
            } else {
                lines.append(line)
                line = String(word)
            }
        }
        if !line.isEmpty { lines.append(line) }
        return lines
    }

    /// Two columns; the second is wrapped, and begins on a line of its own where the first is too wide.
    static func columns(_ rows: [(String, String)], indent: Int, gap: Int, width: Int, widest: Int = 26) -> [String] {
        let column = min(rows.map(\.0.count).max() ?? 0, widest)
        let hanging = String(repeating: " ", count: indent + column + gap)
        var lines: [String] = []
        for (left, right) in rows {
            var wrapped = wrap(right, width: width - hanging.count)
            var first = String(repeating: " ", count: indent) + left
            if left.count <= column, let head = wrapped.first {
                first += String(repeating: " ", count: column - left.count + gap) + head
                wrapped.removeFirst()
            }
            lines.append(first)
            lines += wrapped.map { hanging + $0 }
        }
        return lines
    }

    /// Columns as wide as their widest cell, but the last; as many cells in every row.
    static func table(_ rows: [[String]]) -> [String] {
        let last = (rows.first?.count ?? 1) - 1
        let widths = (0..<max(last, 0)).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell
                if column < last { line += String(repeating: " ", count: widths[column] - cell.count + 2) }
            }
            return line
        }
    }
}
