// Another file of the same module may go on with Foundation, and then means Foundation.
import Foundation

func plainBytes(at path: String) throws -> Int { try Data(contentsOf: URL(fileURLWithPath: path)).count }
