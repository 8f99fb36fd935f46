import Glibc
import LinuxSystem
import Synchronization

/// System calls of which some fail: the Nth, or every one from the Nth on. Counts them, and notices descriptors that
/// were opened and not closed.
public final class FailingCalls: Sendable {
    /// Which calls fail. Counting begins at 1.
    public enum Plan: Sendable, Hashable {
        case none
        case only(Int)
        case from(Int)
    }

    private struct State {
        var plan: Plan
        var errorNumber: Int32
        var count = 0
        var failed: [String] = []
        var open: [Int32: String] = [:]
    }

    private let state: Mutex<State>
    private let base: any SystemCalls
    private let afterwards: Bool
    private let matches: @Sendable (SystemCallDescription) -> Bool
    /// To be handed to the code under test.
    public var system: any SystemCalls {
        InterceptedSystemCalls(
            base,
            intercept: { [self] (call) throws(SystemError) in try before(call) },
            observe: { [self] in after($0, $1) })
    }

    /// Fails calls for which `matches` is true (by default, all) as the plan says, with this `errno`; `afterwards`
    /// makes them do their work first, and only then report the error.
    public init(
        _ base: any SystemCalls = LinuxSystemCalls.shared, plan: Plan = .none, errorNumber: Int32 = EIO,
        afterwards: Bool = false, matching matches: @escaping @Sendable (SystemCallDescription) -> Bool = { _ in true }
    ) {
        self.base = base
        self.afterwards = afterwards
        self.matches = matches
        state = Mutex(State(plan: plan, errorNumber: errorNumber))
    }

    /// How many calls were made that count.
    public var count: Int { state.withLock { $0.count } }
    /// What failed, such as "pwrite".
    public var failed: [String] { state.withLock { $0.failed } }
    /// What was opened and not closed, by path.
    public var leaked: [String] { state.withLock { $0.open.values.sorted() } }

    private func before(_ call: SystemCallDescription) throws(SystemError) -> Interception {
        guard matches(call) else { return .proceed }
        let errorNumber: Int32? = state.withLock { state in
            state.count += 1
            switch state.plan {
            case .only(let number) where state.count == number: break
            case .from(let number) where state.count >= number: break
            default: return nil
            }
            state.failed.append(call.name)
            return state.errorNumber
        }
        guard let errorNumber else { return .proceed }
        if afterwards { return .failAfterwards(errorNumber: errorNumber) }
        throw call.failure(errorNumber)
    }

    private func after(_ call: SystemCallDescription, _ result: Int) {
        state.withLock { state in
            switch call.operation {
            case .open: state.open[Int32(result)] = call.path?.description ?? ""
            case .duplicate: state.open[Int32(result)] = "a duplicate"
            case .close: if let descriptor = call.descriptor { state.open[descriptor] = nil }
            default: break
            }
        }
    }
}

/// One failure that was caused, to name it when something is wrong after it.
public struct CausedFailure: Sendable, CustomStringConvertible {
    public let plan: FailingCalls.Plan
    public let errorNumber: Int32
    public let afterwards: Bool
    public let calls: [String]

    public var description: String {
        let verb = afterwards ? "done and reported as " : ""
        let names = calls.prefix(3).joined(separator: ", ")
        return "\(plan) \(verb)\(SystemErrorText.symbol(errorNumber)) (\(names))"
    }
}

/// Runs `body` again and again, failing call 1, then 2, and so on until there is no such call; then the same for every
/// call from N on. Before each run `setUp` makes a fresh start; after each, `check` gets what it made, the failure, and
/// the error that `body` threw. Descriptors left open are an error here. Returns the number of runs.
@discardableResult
public func failingEveryCall<Start>(
    errorNumbers: [Int32] = [EIO, ENOSPC], afterwards: Bool = false,
    matching matches: @escaping @Sendable (SystemCallDescription) -> Bool = { _ in true },
    setUp: () throws -> Start, _ body: (Start, any SystemCalls) throws -> Void,
    check: (Start, CausedFailure, (any Error)?) throws -> Void
) throws -> Int {
    var runs = 0
    for errorNumber in errorNumbers {
        for makePlan in [{ FailingCalls.Plan.only($0) }, { FailingCalls.Plan.from($0) }] {
            for number in 1... {
                let start = try setUp()
                let calls = FailingCalls(
                    plan: makePlan(number), errorNumber: errorNumber, afterwards: afterwards, matching: matches)
                var thrown: (any Error)?
                do { try body(start, calls.system) } catch { thrown = error }
                let failed = calls.failed
                if failed.isEmpty {
                    // Beyond the last call: the run in which all went well.
                    if let thrown { throw thrown }
                    break
                }
                runs += 1
                let failure = CausedFailure(
                    plan: makePlan(number), errorNumber: errorNumber, afterwards: afterwards, calls: failed)
                guard calls.leaked.isEmpty else { throw DescriptorLeak(failure: failure, paths: calls.leaked) }
                try check(start, failure, thrown)
            }
        }
    }
    return runs
}

/// Something was opened and not closed after a failure.
public struct DescriptorLeak: Error, CustomStringConvertible {
    public let failure: CausedFailure
    public let paths: [String]
    public var description: String { "left open after \(failure): \(paths.joined(separator: ", "))" }
}
