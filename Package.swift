// swift-tools-version: 6.3
import PackageDescription

// Every target compiles in the Swift 6 language mode; warnings are errors in scripts/test.
let package = Package(
    name: "candado",
    products: [
        .executable(name: "candado", targets: ["candado"]),
        .executable(name: "candado-agent", targets: ["candado-agent"]),
        .library(name: "FileProtection", targets: ["FileProtection"]),
        .library(name: "ProtectedFoundation", targets: ["ProtectedFoundation"]),
        .library(name: "Keychain", targets: ["Keychain"]),
        .library(name: "Security", targets: ["Security"]),
        // scripts/install names it libcandado.so.
        .library(name: "CandadoC", type: .dynamic, targets: ["CandadoC"]),
    ],
    targets: [
        // Floor 0: system libraries and the C shims that macros and variadic functions force.
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CLinux"),
        // The C library's header, which is the contract; its functions are CandadoC's.
        .target(name: "CCandado"),
        // Floor 1
        .target(name: "SecretMemory", dependencies: ["CLinux"]),
        .target(name: "LinuxSystem", dependencies: ["CLinux"]),
        // Floor 2
        .target(name: "ProtectionModel", dependencies: ["SecretMemory", "LinuxSystem"]),
        .target(name: "Cryptography", dependencies: ["COpenSSL", "SecretMemory", "ProtectionModel"]),
        .target(name: "KeychainModel", dependencies: ["SecretMemory", "LinuxSystem", "ProtectionModel"]),
        // Floor 3
        .target(
            name: "Keybag",
            dependencies: ["Cryptography", "KeychainModel", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        .target(
            name: "ProtectedFiles", dependencies: ["Cryptography", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        .target(
            name: "KeychainStore",
            dependencies: [
                "CSQLite", "Cryptography", "KeychainModel", "ProtectionModel", "LinuxSystem", "SecretMemory",
            ]),
        // Floor 4
        .target(
            name: "AgentProtocol", dependencies: ["KeychainModel", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        .target(
            name: "AgentClient",
            dependencies: ["AgentProtocol", "KeychainModel", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        .target(
            name: "AgentServer",
            dependencies: [
                "AgentProtocol", "Cryptography", "Keybag", "KeychainModel", "KeychainStore", "ProtectionModel",
                "LinuxSystem", "SecretMemory", "CSystemd",
            ]),
        // Floor 5
        .target(
            name: "FileProtection",
            dependencies: [
                "AgentClient", "AgentProtocol", "Keybag", "ProtectedFiles", "ProtectionModel", "LinuxSystem",
                "SecretMemory",
            ]),
        // Foundation's own calls, for the module that shadows them.
        .target(name: "PlainFoundation"),
        .target(name: "ProtectedFoundation", dependencies: ["FileProtection", "PlainFoundation"]),
        .target(name: "CandadoC", dependencies: ["CCandado", "FileProtection"]),
        .target(name: "ProtectionAudit", dependencies: ["ProtectedFiles", "ProtectionModel", "LinuxSystem"]),
        .target(
            name: "Keychain",
            dependencies: [
                "AgentClient", "FileProtection", "Keybag", "KeychainModel", "KeychainStore", "ProtectionModel",
                "LinuxSystem", "SecretMemory",
            ]),
        .target(
            name: "Security",
            dependencies: ["Keychain", "KeychainModel", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        // Floor 6
        .executableTarget(
            name: "candado",
            dependencies: ["FileProtection", "Keychain", "KeychainModel", "KeychainStore", "ProtectionAudit"]),
        .executableTarget(
            name: "candado-agent",
            dependencies: ["AgentServer", "Keybag", "ProtectionModel", "LinuxSystem", "SecretMemory"]),
        // Measures the library for Benchmarks/run; not a product.
        .executableTarget(name: "candado-benchmark", dependencies: ["FileProtection"], path: "Benchmarks/RandomAccess"),
        .executableTarget(
            name: "candado-foundation-benchmark",
            dependencies: ["ProtectedFoundation", "PlainFoundation", "FileProtection"],
            path: "Benchmarks/Foundation"),
        .executableTarget(
            name: "candado-agent-benchmark", dependencies: ["FileProtection"], path: "Benchmarks/Agent"),
        .executableTarget(
            name: "candado-keychain-benchmark",
            dependencies: ["FileProtection", "Keychain", "KeychainModel", "KeychainStore", "Security"],
            path: "Benchmarks/Keychain"),
        // Test support and tests
        .target(
            name: "TestSupport", dependencies: ["LinuxSystem", "ProtectionModel", "SecretMemory"],
            path: "Tests/TestSupport"),
        .testTarget(name: "SecretMemoryTests", dependencies: ["SecretMemory", "TestSupport"]),
        .testTarget(name: "LinuxSystemTests", dependencies: ["LinuxSystem", "TestSupport"]),
        .testTarget(name: "ProtectionModelTests", dependencies: ["ProtectionModel", "TestSupport"]),
        .testTarget(name: "CryptographyTests", dependencies: ["Cryptography", "TestSupport"]),
        .testTarget(name: "KeybagTests", dependencies: ["Keybag", "TestSupport"]),
        // A second process for the tests of locks; not a product.
        .executableTarget(
            name: "candado-test-worker", dependencies: ["ProtectedFiles", "Keybag", "TestSupport"],
            path: "Tests/TestWorker"),
        .testTarget(
            name: "ProtectedFilesTests",
            dependencies: ["ProtectedFiles", "Keybag", "TestSupport", "candado-test-worker"]),
        .testTarget(name: "KeychainModelTests", dependencies: ["KeychainModel", "TestSupport"]),
        .testTarget(name: "KeychainStoreTests", dependencies: ["KeychainStore", "Keybag", "TestSupport"]),
        .testTarget(
            name: "KeychainTests",
            dependencies: [
                "Keychain", "KeychainStore", "FileProtection", "Cryptography", "TestSupport", "candado-agent",
            ]),
        .testTarget(
            name: "SecurityTests",
            dependencies: ["Security", "Keychain", "KeychainStore", "TestSupport", "candado-agent"]),
        .testTarget(name: "AgentProtocolTests", dependencies: ["AgentProtocol", "TestSupport"]),
        .testTarget(
            name: "AgentServerTests",
            dependencies: ["AgentServer", "FileProtection", "TestSupport", "candado", "candado-agent"],
            exclude: ["fake_logind.py"]),
        // A client program for the tests of the agent; not a product.
        .executableTarget(
            name: "candado-test-client", dependencies: ["FileProtection", "TestSupport"], path: "Tests/TestClient"),
        .testTarget(
            name: "AgentClientTests",
            dependencies: [
                "AgentClient", "AgentServer", "FileProtection", "TestSupport", "candado-agent", "candado-test-client",
            ]),
        .testTarget(
            name: "FileProtectionTests",
            dependencies: ["FileProtection", "Cryptography", "TestSupport", "candado-agent"]),
        .testTarget(
            name: "ProtectedFoundationTests",
            dependencies: ["ProtectedFoundation", "FileProtection", "TestSupport", "candado-agent"]),
        .testTarget(
            name: "CandadoCTests",
            dependencies: ["CandadoC", "CCandado", "FileProtection", "TestSupport", "candado-agent"]),
        .testTarget(name: "ProtectionAuditTests", dependencies: ["ProtectionAudit", "FileProtection", "TestSupport"]),
        // One table through the library with keys of its own, through the agent, and through the commands.
        .testTarget(
            name: "StateMatrixTests", dependencies: ["FileProtection", "TestSupport", "candado", "candado-agent"]),
        .testTarget(name: "CommandLineTests", dependencies: ["candado", "TestSupport"], exclude: ["Scenarios"]),
    ],
    swiftLanguageModes: [.v6]
)
