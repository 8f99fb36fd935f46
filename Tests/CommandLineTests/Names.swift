@testable import candado

/// Swift Testing has a type of the same name.
typealias ExitStatus = candado.ExitStatus
