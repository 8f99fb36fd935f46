// swift-tools-version: 6.1
import PackageDescription

// A program in the idioms in which people write about file protection, from outside the package.
let package = Package(
    name: "article",
    dependencies: [.package(name: "candado", path: "../../..")],
    targets: [
        .executableTarget(
            name: "article", dependencies: [.product(name: "ProtectedFoundation", package: "candado")])
    ]
)
