// swift-tools-version: 6.1
import PackageDescription

// Programs in the idioms in which people write about the keychain, from outside the package: with `import Security`, and with
// `import Foundation` alone in the ways of docs/ios-keychain.md.
let package = Package(
    name: "keychain-idioms",
    dependencies: [.package(name: "candado", path: "../../..")],
    targets: [
        .executableTarget(name: "idioms", dependencies: [.product(name: "Security", package: "candado")]),
        .executableTarget(
            name: "added-file", dependencies: [.product(name: "Security", package: "candado")],
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "compiler-flag", dependencies: [.product(name: "Security", package: "candado")],
            swiftSettings: [
                .swiftLanguageMode(.v5),
                .unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "Security"]),
            ]),
    ]
)
