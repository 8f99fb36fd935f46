// swift-tools-version: 6.1
import PackageDescription

// Links every product of the package from outside it.
let package = Package(
    name: "products",
    dependencies: [.package(name: "candado", path: "../../..")],
    targets: [
        .executableTarget(
            name: "swift-app",
            dependencies: [
                .product(name: "FileProtection", package: "candado"),
                .product(name: "ProtectedFoundation", package: "candado"),
            ]),
        .executableTarget(
            name: "keychain-app",
            dependencies: [
                .product(name: "Security", package: "candado"),
                .product(name: "Keychain", package: "candado"),
            ]),
        .executableTarget(name: "c-app", dependencies: [.product(name: "CandadoC", package: "candado")]),
    ]
)
