import ProtectionModel

/// What the agent tells of itself.
public struct AgentStatus: Hashable, Sendable {
    /// The process at the other end of a connection.
    public struct Client: Hashable, Sendable {
        public var process: UInt32
        /// The path of its executable when it connected, or empty when that could not be read.
        public var executable: String
        /// File keys on loan to it.
        public var loans: UInt32

        public init(process: UInt32, executable: String, loans: UInt32) {
            self.process = process
            self.executable = executable
            self.loans = loans
        }
    }

    /// A program that finds nothing where another of the same name, which is not there any more, has items.
    public struct MovedProgram: Hashable, Sendable {
        /// The access group of the items: a path, or `script:` and a path.
        public var old: String
        /// The access group of the program that asked.
        public var new: String

        public init(old: String, new: String) {
            self.old = old
            self.new = new
        }
    }

    public var process: UInt32
    /// The version of the program.
    public var version: String
    public var keybag: KeybagIdentifier
    public var state: LockState
    /// When the present state began, in seconds since 1970.
    public var since: Int64
    /// Why it was last locked; nil when it never was.
    public var lastLock: LockReason?
    /// Seconds until a grace period ends, when one runs.
    public var graceLeft: Double?
    public var hasPasscode: Bool
    public var hasRecoveryKey: Bool
    public var isErased: Bool
    public var defaultClass: ProtectionClass
    /// Classes whose files can be opened now.
    public var available: [ProtectionClass]
    /// False when memory for keys could not be locked.
    public var memoryIsLocked: Bool
    /// Who still has keys although the state is not `unlocked`, in words: then the lock is not complete.
    public var inTheWay: [String]
    /// Clients that have files of class `complete-unless-open` open, which a lock leaves to them.
    public var openFiles: [LockReport.OpenFiles]
    /// Everybody who is connected, this one left out; at most ``maximumClients``, the last of which then says how many more
    /// there are, as process 0.
    public var clients: [Client]
    /// How many are connected, this one left out.
    public var clientCount: UInt32
    /// Programs that seem to have been moved, and find the items of their old place no more; at most ``maximumMoved``.
    public var movedPrograms: [MovedProgram]

    /// The most clients that a status names.
    public static let maximumClients = 24
    /// The most programs that seem to have been moved that a status names.
    public static let maximumMoved = 6
    /// The most bytes of the name of one: a shortened one would be another's.
    public static let longestMoved = WireWriter.longestText
    /// The most entries of the other lists.
    static let longestList = 12

    public init(
        process: UInt32, version: String, keybag: KeybagIdentifier, state: LockState, since: Int64,
        lastLock: LockReason?, graceLeft: Double?, hasPasscode: Bool, hasRecoveryKey: Bool, isErased: Bool,
        defaultClass: ProtectionClass, available: [ProtectionClass], memoryIsLocked: Bool, inTheWay: [String],
        openFiles: [LockReport.OpenFiles], clients: [Client], clientCount: UInt32,
        movedPrograms: [MovedProgram] = []
    ) {
        self.process = process
        self.version = version
        self.keybag = keybag
        self.state = state
        self.since = since
        self.lastLock = lastLock
        self.graceLeft = graceLeft
        self.hasPasscode = hasPasscode
        self.hasRecoveryKey = hasRecoveryKey
        self.isErased = isErased
        self.defaultClass = defaultClass
        self.available = available
        self.memoryIsLocked = memoryIsLocked
        self.inTheWay = inTheWay
        self.openFiles = openFiles
        self.clients = clients
        self.clientCount = clientCount
        self.movedPrograms = movedPrograms
    }

    /// The first of `count` clients for a message: where not all have room, the last entry says how many more there are.
    public static func shortened(_ first: [Client], count: Int) -> [Client] {
        guard count > maximumClients else { return first }
        let named = first.prefix(maximumClients - 1)
        return named + [Client(process: 0, executable: LockReport.left(count - named.count), loans: 0)]
    }

    init(_ reader: inout WireReader) throws(MalformedMessage) {
        process = try reader.number(UInt32.self)
        version = try reader.text()
        guard let identifier = KeybagIdentifier(bytes: try reader.take(16)) else {
            throw MalformedMessage("a keybag has no such identifier")
        }
        keybag = identifier
        state = try reader.oneOf(LockState.allCases, "state")
        since = try reader.number(Int64.self)
        lastLock = try reader.flag() ? try reader.oneOf(LockReason.allCases, "reason") : nil
        graceLeft = try reader.flag() ? try reader.seconds() : nil
        hasPasscode = try reader.flag()
        hasRecoveryKey = try reader.flag()
        isErased = try reader.flag()
        defaultClass = try reader.protectionClass()
        available = try reader.list(atMost: ProtectionClass.allCases.count) { (reader) throws(MalformedMessage) in
            try reader.protectionClass()
        }
        memoryIsLocked = try reader.flag()
        inTheWay = try reader.list(atMost: Self.longestList) { (reader) throws(MalformedMessage) in
            try reader.text()
        }
        openFiles = try LockReport.openFiles(&reader, atMost: Self.longestList)
        clients = try reader.list(atMost: Self.maximumClients) { (reader) throws(MalformedMessage) in
            Client(
                process: try reader.number(UInt32.self), executable: try reader.text(),
                loans: try reader.number(UInt32.self))
        }
        clientCount = try reader.number(UInt32.self)
        movedPrograms = try reader.list(atMost: Self.maximumMoved) { (reader) throws(MalformedMessage) in
            MovedProgram(old: try reader.text(), new: try reader.text())
        }
    }

    func write(to writer: inout WireWriter) {
        writer.number(process)
        writer.text(version)
        writer.raw(keybag.bytes)
        writer.oneOf(state, LockState.allCases)
        writer.number(since)
        writer.flag(lastLock != nil)
        if let lastLock { writer.oneOf(lastLock, LockReason.allCases) }
        writer.flag(graceLeft != nil)
        if let graceLeft { writer.seconds(graceLeft) }
        writer.flag(hasPasscode)
        writer.flag(hasRecoveryKey)
        writer.flag(isErased)
        writer.number(defaultClass.rawValue)
        writer.list(available) { $0.number($1.rawValue) }
        writer.flag(memoryIsLocked)
        writer.list(LockReport.shortened(inTheWay, to: Self.longestList)) { $0.text($1) }
        LockReport.write(openFiles, atMost: Self.longestList, to: &writer)
        writer.list(Self.shortened(clients, count: clients.count)) { writer, client in
            writer.number(client.process)
            writer.text(client.executable)
            writer.number(client.loans)
        }
        writer.number(clientCount)
        writer.list(Array(movedPrograms.prefix(Self.maximumMoved))) { writer, program in
            writer.text(program.old)
            writer.text(program.new)
        }
    }
}
