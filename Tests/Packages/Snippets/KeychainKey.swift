private struct Session: Codable, Sendable {}
