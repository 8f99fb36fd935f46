import FileProtection
import TestSupport
import Testing

/// Carries out the operations by commands, each a process of its own.
struct CommandOperator: StateMatrixOperator {
    let candado: CandadoCommand

    /// Operations that no command can do: what is asked of one handle before and after a change of state. They run through
    /// the library's calls alone.
    static let needsHandle: Set<String> = [
        "create through a handle", "open for updating", "read through a handle", "write through a handle",
        "append through a handle", "shorten through a handle", "lengthen through a handle", "length through a handle",
        "fsync after a write", "close after a write",
    ]

    /// A command, and what it has to say.
    struct Step {
        enum Output {
            case anything
            case bytes([UInt8])
            /// This somewhere in it.
            case text(String)
        }

        let words: [String]
        var input: [UInt8] = []
        var output = Output.bytes([])

        /// What stands on stdout when it is refused: commands that count say that they did nothing.
        var refusal: String {
            switch words.first(where: { Self.verbs[$0] != nil }).flatMap({ Self.verbs[$0] }) {
            case let verb?: "0 \(verb), 1 failed\n"
            case nil: ""
            }
        }

        private static let verbs = [
            "protect": "protected", "unprotect": "unprotected", "repair": "mended", "set-class": "changed",
        ]
    }

    func perform(_ stage: StateMatrixStage, _ protection: FileProtection) throws -> StateMatrix.Outcome {
        guard let steps = steps(of: stage.cell, in: stage.directory) else { throw LibraryOperator.UnknownOperation() }
        for step in steps {
            let result = try candado.run(step.words, input: step.input)
            switch result.status {
            case 0: check(step, result, stage.cell)
            case 10:
                #expect(result.outputText == step.refusal, "\(stage.cell)")
                #expect(result.errorText.contains("locked"), "\(stage.cell): \(result.errorText)")
                return .locked
            default:
                throw RunningAgent.Failure(
                    description: "\(step.words): status \(result.status), \(result.errorText)")
            }
        }
        return .ok
    }

    private func check(_ step: Step, _ result: CommandResult, _ cell: StateMatrix.Cell) {
        switch step.output {
        case .anything: break
        case .bytes(let bytes):
            #expect(result.output == bytes, "\(cell): \(step.words) wrote \(result.output.count) bytes")
        case .text(let text):
            #expect(result.outputText.contains(text), "\(cell): \(step.words) wrote \(result.outputText)")
        }
    }

    /// The commands of an operation; nil when there are none.
    func steps(of cell: StateMatrix.Cell, in directory: FilePath) -> [Step]? {
        let file = directory.appending("file").description
        let folder = directory.appending("folder").description
        let new = directory.appending("new").description
        let name = cell.protectionClass.name
        let content = StateMatrixStage.content
        let plain = StateMatrixStage.plain
        func own(_ words: String..., input: [UInt8] = [], output: Step.Output = .anything) -> [Step] {
            [Step(words: candado.words(words), input: input, output: output)]
        }
        func other(_ words: String..., output: Step.Output = .bytes([])) -> [Step] {
            [Step(words: words, output: output)]
        }
        if let target = StateMatrix.targetClass(of: cell.operation) {
            return cell.operation.hasPrefix("rekey")
                ? own("set-class", "--rekey", target.name, file) : own("set-class", target.name, file)
        }
        switch cell.operation {
        case "create a whole file": return own("write", "--class", name, new, input: plain)
        case "create by the directory's class": return own("write", folder + "/new", input: plain)
        case "protect a plain file":
            return own("protect", "--class", name, directory.appending("plain").description)
        case "open for reading": return own("read", file, output: .bytes(content))
        case "read the whole content": return own("read", file, "-", output: .bytes(content))
        // The first is this process's, which has it open meanwhile.
        case "open a second handle": return own("read", file, output: .bytes(content))
        case "unprotect": return own("unprotect", file)
        case "repair": return own("repair", file)
        case "replace with the same class": return own("write", file, input: plain)
        case "replace with class none": return own("write", "--class", "none", file, input: plain)
        case "read the class": return own("class", "--json", file, output: .text("\"class\":\"\(name)\""))
        case "set the class of a directory":
            return (ProtectionClass.allCases + [cell.protectionClass]).flatMap { other -> [Step] in
                own("set-class", other.name, folder)
                    + own("class", "--json", folder, output: .text("\"class\":\"\(other.name)\""))
            }
        case "take the class off a directory": return own("unprotect", "-r", folder)
        case "rename": return other("mv", "-n", file, folder + "/moved")
        case "link": return other("ln", file, directory.appending("other").description)
        case "unlink": return other("rm", file)
        case "stat": return other("stat", "--format=%F", file, output: .text("regular file"))
        case "change permissions": return other("chmod", "640", file)
        case "change times": return other("touch", "--date=@1000000.000000007", file)
        case "set another attribute":
            return other("python3", "-c", "import os, sys; os.setxattr(sys.argv[1], 'user.other', b'\\1\\2')", file)
        case "list a directory of the class": return other("ls", "-A", folder)
        case "make a directory in one": return other("mkdir", folder + "/inner")
        default: return nil
        }
    }
}
