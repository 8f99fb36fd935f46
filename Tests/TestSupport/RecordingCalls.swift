import Glibc
import LinuxSystem
import Synchronization

/// System calls that write down every change below one directory, in order, with the bytes; and what was there before.
/// Files are followed by their identity, so renames, second names and files without a name are understood.
///
/// With several threads, each change is written down when it was done, and a synchronisation covers only what was done
/// before it began.
public final class RecordingCalls: Sendable {
    /// What `mark` noted: so many operations had been made by then.
    struct Mark: Sendable {
        let position: Int
        let text: String
    }

    private struct Identity: Hashable {
        let device: UInt64
        let inode: UInt64
        init(_ status: FileStatus) {
            device = status.device
            inode = status.inode
        }
    }

    /// What was looked up before a call and is needed after it.
    private struct Before {
        var existed = false
        var moved: FileNumber?
        var exchanged: FileNumber?
        /// How many operations were written down by then.
        var position = 0
    }

    private struct State {
        var operations: [RecordedOperation] = []
        /// For a synchronisation during which others went on: so many operations from the start are covered.
        var reach: [Int: Int] = [:]
        var marks: [Mark] = []
        var numbers: [Identity: FileNumber] = [:]
        var nextNumber = 0
        var problems: [String] = []
        /// By thread: a call and its end are on the same one.
        var before: [pthread_t: Before] = [:]
    }

    /// The directory as it was at the start.
    public let start: FileTree
    private let base: any SystemCalls
    private let state: Mutex<State>

    /// Reads the whole tree below `root`. Symbolic links, owners and times are not looked at.
    public init(of root: FilePath, _ base: any SystemCalls = LinuxSystemCalls.shared) throws {
        self.base = base
        var first = State()
        start = try FileTree(reading: root) { status in
            first.numbers[Identity(status)]
                ?? {
                    let number = first.nextNumber
                    first.numbers[Identity(status)] = number
                    first.nextNumber += 1
                    return number
                }()
        }
        state = Mutex(first)
    }

    /// To be handed to the code under test.
    public var system: any SystemCalls {
        InterceptedSystemCalls(
            base,
            intercept: { [self] (call) throws(SystemError) in
                before(call)
                return .proceed
            },
            observe: { [self] in after($0, $1) })
    }

    /// What happened so far.
    public var operations: [RecordedOperation] { state.withLock { $0.operations } }
    /// What could not be followed. Must be empty for the recording to be of use.
    public var problems: [String] { state.withLock { $0.problems } }
    var marks: [Mark] { state.withLock { $0.marks } }
    var reach: [Int: Int] { state.withLock { $0.reach } }

    /// Notes that the code under test has, at this point, promised something: crash images from here on carry the text.
    public func mark(_ text: String) {
        state.withLock { $0.marks.append(Mark(position: $0.operations.count, text: text)) }
    }

    private func before(_ call: SystemCallDescription) {
        state.withLock { state in
            var before = Before(position: state.operations.count)
            switch call.operation {
            case .open:
                if let options = call.options, options.contains(.create) {
                    before.existed = status(call.path, call.directory, follow: !options.contains(.noFollow)) != nil
                }
            case .rename:
                before.moved = status(call.source, call.sourceDirectory).flatMap { state.numbers[Identity($0)] }
                if call.replacing == .required {
                    before.exchanged = status(call.path, call.directory).flatMap { state.numbers[Identity($0)] }
                }
            case .synchronize, .synchronizeData, .synchronizeFileSystem: break
            default: return
            }
            state.before[pthread_self()] = before
        }
    }

    private func after(_ call: SystemCallDescription, _ result: Int) {
        state.withLock { state in
            let before = state.before.removeValue(forKey: pthread_self()) ?? Before()
            switch call.operation {
            case .open: opened(call, Int32(result), before, &state)
            case .write, .writeAt: written(call, result, &state)
            case .truncate:
                changed(call, &state) { .resize($0, length: call.count ?? 0) }
            case .allocate:
                changed(call, &state) { .extend($0, length: (call.offset ?? 0) + (call.count ?? 0)) }
            case .setAttribute:
                let value = call.bytes.map { Array($0) } ?? []
                changed(call, &state) { .setAttribute($0, name: call.attribute ?? "", value: value) }
            case .removeAttribute:
                changed(call, &state) { .removeAttribute($0, name: call.attribute ?? "") }
            case .changePermissions:
                changed(call, &state) { .changePermissions($0, call.permissions ?? 0) }
            case .synchronize, .synchronizeData, .synchronizeFileSystem: synchronized(call, before, &state)
            case .link:
                guard let place = place(call.path, call.directory, state) else { return }
                guard let file = number(call.descriptor, state) else {
                    state.problems.append("a link to a file from elsewhere: \(place.name.quoted)")
                    return
                }
                state.operations.append(.enter(directory: place.directory, name: place.name, file: file))
            case .unlink, .removeDirectory:
                guard let place = place(call.path, call.directory, state) else { return }
                state.operations.append(.remove(directory: place.directory, name: place.name))
            case .makeDirectory:
                guard let place = place(call.path, call.directory, state),
                    let status = status(call.path, call.directory)
                else { return }
                add(status, at: place, &state)
            case .rename: renamed(call, before, &state)
            default: break
            }
        }
    }

    private func opened(
        _ call: SystemCallDescription, _ descriptor: Int32, _ before: Before, _ state: inout State
    ) {
        guard let options = call.options, let status = try? base.status(descriptor) else { return }
        if options.contains(.unnamed) {
            // The path is the directory here.
            guard let directory = self.status(call.path, call.directory, follow: true),
                state.numbers[Identity(directory)] != nil
            else { return }
            add(status, at: nil, &state)
        } else if options.contains(.create), !before.existed {
            guard let place = place(call.path, call.directory, state) else { return }
            add(status, at: place, &state)
        } else if options.contains(.truncate), let file = state.numbers[Identity(status)] {
            state.operations.append(.resize(file, length: 0))
        }
    }

    private func written(_ call: SystemCallDescription, _ count: Int, _ state: inout State) {
        guard let descriptor = call.descriptor, let bytes = call.bytes, count > 0 else { return }
        let offset: Int64
        if let asked = call.offset, fcntl(descriptor, F_GETFL) & O_APPEND == 0 {
            offset = asked
        } else if call.offset != nil {
            // pwrite on an O_APPEND descriptor appends, whatever the offset.
            guard let size = try? base.status(descriptor).size else { return }
            offset = size - Int64(count)
        } else {
            offset = Int64(lseek(descriptor, 0, SEEK_CUR)) - Int64(count)
        }
        let copy = Array(bytes.prefix(count))
        changed(call, &state) { .write($0, offset: offset, bytes: copy) }
    }

    private func synchronized(_ call: SystemCallDescription, _ before: Before, _ state: inout State) {
        let position = state.operations.count
        switch call.operation {
        case .synchronizeFileSystem: state.operations.append(.synchronizeAll)
        default: changed(call, &state) { .synchronize($0, dataOnly: call.operation == .synchronizeData) }
        }
        if before.position < position { state.reach[position] = before.position }
    }

    private func renamed(_ call: SystemCallDescription, _ before: Before, _ state: inout State) {
        let from = place(call.source, call.sourceDirectory, state)
        let to = place(call.path, call.directory, state)
        guard let from, let to, let file = before.moved else {
            if from != nil || to != nil { state.problems.append("a rename across the border of the recording") }
            return
        }
        state.operations.append(
            .rename(
                file, fromDirectory: from.directory, from: from.name, toDirectory: to.directory, to: to.name,
                exchanged: before.exchanged))
    }

    /// A change of an open file; nothing when the file is outside.
    private func changed(
        _ call: SystemCallDescription, _ state: inout State, _ make: (FileNumber) -> RecordedOperation
    ) {
        guard let file = number(call.descriptor, state) else { return }
        state.operations.append(make(file))
    }

    /// A new file. Its inode number may have belonged to another one before.
    private func add(_ status: FileStatus, at place: (directory: FileNumber, name: FilePath)?, _ state: inout State) {
        let number = state.nextNumber
        state.nextNumber += 1
        state.numbers[Identity(status)] = number
        state.operations.append(
            .create(number, isDirectory: status.kind == .directory, permissions: status.permissions))
        if let place { state.operations.append(.enter(directory: place.directory, name: place.name, file: number)) }
    }

    private func number(_ descriptor: Int32?, _ state: State) -> FileNumber? {
        guard let descriptor, let status = try? base.status(descriptor) else { return nil }
        return state.numbers[Identity(status)]
    }

    /// The directory of a path, when it is inside, and the last name.
    private func place(
        _ path: FilePath?, _ directory: Int32?, _ state: State
    ) -> (directory: FileNumber, name: FilePath)? {
        guard let path, let status = status(path.parent, directory, follow: true),
            let number = state.numbers[Identity(status)]
        else { return nil }
        return (number, path.lastComponent)
    }

    private func status(_ path: FilePath?, _ directory: Int32?, follow: Bool = false) -> FileStatus? {
        guard let path, let directory else { return nil }
        return try? base.status(of: path, in: directory, followLinks: follow)
    }
}
