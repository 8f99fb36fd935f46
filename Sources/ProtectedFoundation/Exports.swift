// A file that imports this module, and not Foundation, gets all of Foundation, with the calls of this module in place of
// Foundation's where both have one of the same signature.
@_exported import Foundation
