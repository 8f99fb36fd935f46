// On Apple's systems the names of this module come with Foundation's, and most code relies on that.
@_exported import Foundation
