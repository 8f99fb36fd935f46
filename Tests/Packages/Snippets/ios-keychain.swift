private nonisolated(unsafe) var result: AnyObject?
