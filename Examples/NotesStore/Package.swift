// swift-tools-version: 6.1
import PackageDescription

// An app of its own that depends on Candado as any package would: by path here, by address elsewhere.
let package = Package(
    name: "NotesStore",
    dependencies: [.package(name: "candado", path: "../..")],
    targets: [
        .target(name: "NotesStore", dependencies: [.product(name: "FileProtection", package: "candado")]),
        .executableTarget(name: "notes", dependencies: ["NotesStore"]),
        // With the agent itself, which the tests run.
        .testTarget(
            name: "NotesStoreTests",
            dependencies: [
                "NotesStore", "OwnKeybag", "TutorialStep1", "TutorialStep2", "TutorialStep3", "TutorialStep4",
                "TutorialStep5", .product(name: "candado-agent", package: "candado"),
            ]),
        // The code of an article in FileProtection's documentation.
        .target(
            name: "OwnKeybag", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Articles/OwnKeybag"),
        // The code of the tutorial in FileProtection's documentation, step by step.
        .target(
            name: "TutorialStep1", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Tutorial/Step1"),
        .target(
            name: "TutorialStep2", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Tutorial/Step2"),
        .target(
            name: "TutorialStep3", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Tutorial/Step3"),
        .target(
            name: "TutorialStep4", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Tutorial/Step4"),
        .target(
            name: "TutorialStep5", dependencies: [.product(name: "FileProtection", package: "candado")],
            path: "Tutorial/Step5"),
    ],
    swiftLanguageModes: [.v6]
)
