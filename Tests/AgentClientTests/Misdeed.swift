import AgentProtocol
import LinuxSystem
import ProtectionModel

/// What a fake agent does with one connection, under a name.
struct Misdeed: Sendable {
    let name: String
    let run: @Sendable (FakeConnection, Misdeed.Tools) throws -> Void

    init(_ name: String, _ run: @escaping @Sendable (FakeConnection, Tools) throws -> Void) {
        self.name = name
        self.run = run
    }

    /// Shared memory of all kinds, made once.
    final class Tools: Sendable {
        let keybag = KeybagIdentifier(bytes: [UInt8](repeating: 7, count: 16))
        let page: Int32
        let usage: Int32
        let slab: Int32
        let small: Int32
        let plainFile: Int32
        let unsealed: Int32
        private let holder: BackgroundThread
        private let end = Signal()

        init() throws {
            let calls = LinuxInterprocessCalls.shared
            let made = try calls.makeSharedMemory(size: LockPage.size, writableByOthers: false, locked: false)
            page = made.descriptor
            let lock = LockPage(creatingIn: made.mapping)
            lock.word = LockWord(
                epoch: 3, state: .unlocked, canUnwrap: ProtectionClass.allCases, canWrap: ProtectionClass.allCases,
                hasPasscode: true, defaultClass: .complete)
            let held = Signal()
            holder = BackgroundThread { [end] in
                try? lock.hold()
                held.send()
                end.wait()
            }
            held.wait()
            usage = try calls.makeSharedMemory(size: UsagePage.size, writableByOthers: true, locked: false).descriptor
            let slabMade = try calls.makeSharedMemory(
                size: 2 * LoanSlab.pageSize, writableByOthers: false, locked: false)
            slab = slabMade.descriptor
            let key = (0..<32).map { UInt8($0 + 1) }
            key.withUnsafeBytes { LoanSlab(slabMade.mapping, pages: 2).put($0, in: 0, .guarded, serial: 1) }
            small = try calls.makeSharedMemory(size: 1, writableByOthers: false, locked: false).descriptor
            let system = LinuxSystemCalls.shared
            plainFile = try system.open(
                "/dev/shm", in: currentDirectory, [.read, .write, .unnamed], permissions: 0o600)
            try system.truncate(plainFile, to: 1 << 20)
            unsealed = plainFile
        }

        deinit {
            end.send()
            holder.join()
            for descriptor in [page, usage, slab, small, plainFile] { try? LinuxSystemCalls.shared.close(descriptor) }
        }

        /// Says hello as an agent does.
        func welcome(_ connection: FakeConnection) throws {
            guard let (number, request, _) = try connection.next(), case .hello(_, _, let wantsMemory) = request,
                let keybag
            else { return }
            try connection.send(
                .welcome(version: 1, process: 1, keybag: keybag), number: number, descriptors: wantsMemory ? [page] : []
            )
        }

        /// Says hello, and lets `body` answer the first request.
        func afterHello(
            _ connection: FakeConnection, _ body: (UInt32, AgentRequest) throws -> Void
        ) throws {
            try welcome(connection)
            while let (number, request, _) = try connection.next() { try body(number, request) }
        }
    }

    static var welcomePacket: [UInt8] {
        KeybagIdentifier(bytes: [UInt8](repeating: 7, count: 16)).map {
            AgentReply.welcome(version: 1, process: 1, keybag: $0).packet(number: 1)
        } ?? []
    }

    /// The one good answer to an unwrap of one record, which others change.
    static func loans(
        _ count: Int = 1, slot: UInt32 = 0, hasUsagePage: Bool = true, slabPages: [UInt16] = [2]
    ) -> AgentReply {
        .loans(
            (0..<count).map { _ in .success(LoanName(slot: slot, serial: 1)) },
            AgentReply.NewMemory(epoch: 3, hasUsagePage: hasUsagePage, slabPages: slabPages))
    }

    // MARK: The misdeeds

    static let atHello: [Misdeed] = [
        Misdeed("closes at once") { _, _ in },
        Misdeed("closes after hello") { connection, _ in _ = try connection.next() },
        Misdeed("sends garbage") { connection, _ in
            _ = try connection.next()
            try connection.send((0..<200).map { UInt8(truncatingIfNeeded: $0 &* 37) })
        },
        Misdeed("sends one byte") { connection, _ in
            _ = try connection.next()
            try connection.send([1])
        },
        Misdeed("sends garbage unasked, with descriptors") { connection, tools in
            try connection.send([1, 2, 3], descriptors: [tools.page, tools.slab, tools.plainFile])
            _ = try connection.next()
        },
        Misdeed("sends a packet that is too long") { connection, _ in
            _ = try connection.next()
            try connection.send([UInt8](repeating: 0, count: 100_000))
        },
        Misdeed("welcomes without a page") { connection, _ in
            _ = try connection.next()
            try connection.send(welcomePacket)
        },
        Misdeed("welcomes with two pages") { connection, tools in
            _ = try connection.next()
            try connection.send(welcomePacket, descriptors: [tools.page, tools.page])
        },
        Misdeed("welcomes with more descriptors than are taken") { connection, tools in
            _ = try connection.next()
            try connection.send(welcomePacket, descriptors: [Int32](repeating: tools.page, count: 8))
        },
        Misdeed("welcomes with a plain file") { connection, tools in
            _ = try connection.next()
            try connection.send(welcomePacket, descriptors: [tools.plainFile])
        },
        Misdeed("welcomes with a directory") { connection, _ in
            _ = try connection.next()
            let directory = try LinuxSystemCalls.shared.openFile("/", [.read, .directory])
            try connection.send(welcomePacket, descriptors: [directory.number])
        },
        Misdeed("welcomes with the socket") { connection, _ in
            _ = try connection.next()
            try connection.send(welcomePacket, descriptors: [connection.socket])
        },
        Misdeed("welcomes with memory that is no lock page") { connection, tools in
            _ = try connection.next()
            try connection.send(welcomePacket, descriptors: [tools.slab])
        },
        Misdeed("welcomes under another number") { connection, tools in
            _ = try connection.next()
            var packet = welcomePacket
            packet[8] = 99
            try connection.send(packet, descriptors: [tools.page])
        },
        Misdeed("welcomes with another version") { connection, tools in
            _ = try connection.next()
            var packet = welcomePacket
            packet[16] = 2
            try connection.send(packet, descriptors: [tools.page])
        },
        Misdeed("answers in another version") { connection, tools in
            _ = try connection.next()
            var packet = welcomePacket
            packet[4] = 9
            try connection.send(packet, descriptors: [tools.page])
        },
        Misdeed("answers hello with done") { connection, tools in
            _ = try connection.next()
            try connection.send(.done, number: 1, descriptors: [tools.page])
        },
        Misdeed("answers hello with a request") { connection, _ in
            _ = try connection.next()
            try connection.send(AgentRequest.status.packet(number: 1))
        },
        Misdeed("answers hello with an event") { connection, _ in
            _ = try connection.next()
            try connection.send(.event(.state(.unlocked)), number: 0)
        },
        Misdeed("refuses") { connection, _ in
            _ = try connection.next()
            try connection.send(.failure(ProtectionError(.busy, "too many are connected")), number: 1)
        },
        Misdeed("refuses unasked") { connection, _ in
            try connection.send(.failure(ProtectionError(.busy, "too many are connected")), number: 0)
        },
        Misdeed("says nothing") { connection, _ in while try connection.next() != nil {} },
    ]

    static let atRequests: [Misdeed] = [
        Misdeed("closes") { connection, tools in
            try tools.welcome(connection)
            _ = try connection.next()
        },
        Misdeed("closes before") { connection, tools in try tools.welcome(connection) },
        Misdeed("sends garbage") { connection, tools in
            try tools.afterHello(connection) { _, _ in try connection.send([UInt8](repeating: 0xEE, count: 64)) }
        },
        Misdeed("sends garbage with descriptors") { connection, tools in
            try tools.afterHello(connection) { _, _ in
                try connection.send([0], descriptors: [tools.usage, tools.slab, tools.page])
            }
        },
        Misdeed("sends events") { connection, tools in
            try tools.afterHello(connection) { _, _ in try connection.send(.event(.state(.locked)), number: 0) }
        },
        Misdeed("answers another number") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number &+ 1, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("answers with a welcome") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                guard let keybag = tools.keybag else { return }
                try connection.send(.welcome(version: 1, process: 1, keybag: keybag), number: number)
            }
        },
        Misdeed("answers with done") { connection, tools in
            try tools.afterHello(connection) { number, _ in try connection.send(.done, number: number) }
        },
        Misdeed("answers with a refusal and descriptors") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(
                    .failure(ProtectionError(.locked(nil), "no")), number: number, descriptors: [tools.slab])
            }
        },
        Misdeed("lends nothing") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(0), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("lends more than was asked for") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(2), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("sends no descriptors") { connection, tools in
            try tools.afterHello(connection) { number, _ in try connection.send(loans(), number: number) }
        },
        Misdeed("sends too few descriptors") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number, descriptors: [tools.usage])
            }
        },
        Misdeed("sends too many descriptors") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number, descriptors: [tools.usage, tools.slab, tools.slab])
            }
        },
        Misdeed("sends a plain file for the usage page") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number, descriptors: [tools.plainFile, tools.slab])
            }
        },
        Misdeed("sends memory for the usage page that cannot be written") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number, descriptors: [tools.slab, tools.slab])
            }
        },
        Misdeed("sends a plain file for the slab") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(), number: number, descriptors: [tools.usage, tools.plainFile])
            }
        },
        Misdeed("sends a slab that is too small") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(
                    loans(slabPages: [3]), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("sends a slab of all pages there are") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(
                    loans(slabPages: [.max]), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("sends a slab without a usage page") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(hasUsagePage: false), number: number, descriptors: [tools.slab])
            }
        },
        Misdeed("lends without memory") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(hasUsagePage: false, slabPages: []), number: number)
            }
        },
        Misdeed("lends a slot behind the slab") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(slot: 192), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("lends a slot far behind the slab") { connection, tools in
            try tools.afterHello(connection) { number, _ in
                try connection.send(loans(slot: .max), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("makes keys of another class") { connection, tools in
            try tools.afterHello(connection) { number, request in
                guard let keybag = tools.keybag else { return }
                let record = KeyRecord(
                    protectionClass: .none, flags: [], generation: 1, keybag: keybag,
                    wrap: .symmetric([UInt8](repeating: 1, count: 40)))
                guard case .makeFileKeys = request, let record else { throw FakeKeyAgent.MalformedTest() }
                try connection.send(
                    .fileKeys(
                        [(record, LoanName(slot: 0, serial: 1))],
                        AgentReply.NewMemory(epoch: 3, hasUsagePage: true, slabPages: [2])),
                    number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("wraps for another class") { connection, tools in
            try tools.afterHello(connection) { number, request in
                guard case .rewrap(let record, _, _, _) = request else { throw FakeKeyAgent.MalformedTest() }
                try connection.send(.record(record), number: number)
            }
        },
        Misdeed("sends a second usage page") { connection, tools in
            try tools.afterHello(connection) { number, request in
                guard case .unwrap(let records, _) = request else { throw FakeKeyAgent.MalformedTest() }
                // The second message of the batch gets it.
                try connection.send(
                    loans(records.count), number: number, descriptors: [tools.usage, tools.slab])
            }
        },
        Misdeed("says nothing") { connection, tools in try tools.afterHello(connection) { _, _ in } },
    ]
}
