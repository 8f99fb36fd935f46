import Glibc
import Keybag
import LinuxSystem
import ProtectionModel

/// The command line of the program.
struct AgentArguments {
    /// What is wrong with it, in a sentence.
    struct Mistake: Error {
        let message: String
    }

    /// What the program is asked to do.
    enum Wish {
        case run
        case showHelp
        case showVersion
    }

    var wish = Wish.run
    var home: FilePath?
    var log: FilePath?
    /// Where to tell that it is ready.
    var readyDescriptor: Int32?
    /// Ordinary locked memory instead of `memfd_secret`.
    var usesOrdinaryMemory = false

    static let help = """
        usage: candado-agent [--home DIR] [--log FILE] [--ready-fd N] [--ordinary-memory]

        The one process of a user that holds class keys; all others ask it through a socket. It starts locked:
        'candado unlock' starts it when it is needed.

          --home DIR          use the keybag in this directory
          --log FILE          write the log to this file instead of stderr
          --ready-fd N        write 'ready PID' to this descriptor when it can be used, 'running PID' when another one
                              runs, 'error TEXT' when it cannot start
          --ordinary-memory   keep keys in ordinary locked memory, so that the machine can hibernate
          --help              show help
          --version           show the version

        """

    /// Reads the words behind the program's name. Paths may be any bytes.
    init(_ words: [FilePath]) throws(Mistake) {
        var rest = words[...]
        while let word = rest.popFirst() {
            let (name, attached) = Self.parts(of: word)
            func value() throws(Mistake) -> FilePath {
                guard let value = attached ?? rest.popFirst() else { throw Mistake(message: "\(name) needs a value") }
                return value
            }
            switch name {
            case "--home":
                let path = try value()
                guard !path.bytes.isEmpty else { throw Mistake(message: "--home needs a directory") }
                home = path
            case "--log":
                let path = try value()
                guard !path.bytes.isEmpty else { throw Mistake(message: "--log needs a file") }
                log = path
            case "--ready-fd":
                guard let number = try value().text.flatMap({ Int32($0) }), number >= 0 else {
                    throw Mistake(message: "--ready-fd takes the number of a descriptor")
                }
                readyDescriptor = number
            case "--ordinary-memory" where attached == nil: usesOrdinaryMemory = true
            case "--help" where attached == nil: wish = .showHelp
            case "--version" where attached == nil: wish = .showVersion
            default: throw Mistake(message: "\(word.quoted) is no option of this program")
            }
            if wish != .run { return }
        }
    }

    /// `--name=value` or a word alone.
    private static func parts(of word: FilePath) -> (name: String, value: FilePath?) {
        guard word.bytes.starts(with: "--".utf8), let equals = word.bytes.firstIndex(of: UInt8(ascii: "=")) else {
            return (word.description, nil)
        }
        return (
            String(decoding: word.bytes[..<equals], as: UTF8.self), FilePath(bytes: Array(word.bytes[(equals + 1)...]))
        )
    }

    // MARK: The home

    /// `--home`, else `CANDADO_HOME`, else by the XDG directories.
    func keybagHome() throws(ProtectionError) -> KeybagHome {
        if let home { return KeybagHome(directory: home) }
        return try KeybagHome { name in getenv(name).map { FilePath(copying: $0).bytes } }
    }
}
