// What the service manager hands over.
private let credential: [UInt8] = []
