import Glibc
import LinuxSystem

/// Where a passcode comes from.
enum PasscodeSource: Sendable, Hashable {
    /// A person, on the terminal without echo; without a terminal but with a display, by pinentry.
    case person
    /// A person, by this pinentry program: a name to look for on PATH, or a path.
    case pinentry(FilePath)
    /// The content of a file.
    case file(FilePath)
    /// What comes through an open descriptor.
    case descriptor(Int32)
    /// A file that the service manager put there for this process alone.
    case credential(FilePath)

    /// The file of a passcode in `$CREDENTIALS_DIRECTORY`.
    static let credentialName: FilePath = "candado.passcode"

    /// The source that a command line names, else the credential of the service manager, which is never that of a new
    /// passcode, else a person. A file `-` is stdin.
    init(
        _ context: CommandContext, file: OptionName = .passcodeFile, descriptor: OptionName = .passcodeDescriptor,
        isNew: Bool = false
    ) throws(UsageError) {
        if let argument = context.invocation.value(file) {
            self = argument.isDash ? .descriptor(0) : .file(argument.path)
        } else if let number = context.invocation.number(descriptor) {
            guard let narrow = Int32(exactly: number) else {
                throw UsageError("'--\(descriptor.rawValue)' needs the number of an open descriptor")
            }
            self = .descriptor(narrow)
        } else {
            let person = PasscodeSource(askingBy: context.invocation)
            if !isNew, person == .person, let path = Self.credential(context.system) {
                self = .credential(path)
            } else {
                self = person
            }
        }
    }

    /// A person, asked in the way that a command line names.
    init(askingBy invocation: Invocation) {
        if let argument = invocation.value(.pinentryProgram) {
            self = .pinentry(argument.path)
        } else {
            self = invocation.has(.pinentry) ? .pinentry(PinentryProgram.name) : .person
        }
    }

    /// True when somebody is there who may try again.
    var isPerson: Bool {
        switch self {
        case .person, .pinentry: true
        case .file, .descriptor, .credential: false
        }
    }

    /// The file that holds the passcode, if one does.
    var path: FilePath? {
        switch self {
        case .file(let path), .credential(let path): path
        case .person, .pinentry, .descriptor: nil
        }
    }

    private static func credential(_ system: any SystemCalls) -> FilePath? {
        guard let directory = getenv("CREDENTIALS_DIRECTORY").map({ FilePath(copying: $0) }), directory.isAbsolute
        else { return nil }
        let path = directory.appending(credentialName)
        do throws(SystemError) {
            _ = try system.status(of: path, in: currentDirectory, followLinks: true)
        } catch {
            // What is there and cannot be looked at fails when it is read, rather than being passed over.
            guard ![ErrorNumber.noEntry, ErrorNumber.notDirectory].contains(error.errorNumber) else { return nil }
        }
        return path
    }
}
