import CCandado

private let versionText: StaticString = "1.0.0"

@c @implementation
public func candado_version() -> UnsafePointer<CChar>? {
    UnsafeRawPointer(versionText.utf8Start).assumingMemoryBound(to: CChar.self)
}
