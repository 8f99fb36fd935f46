import Glibc
import Testing

@testable import LinuxSystem

/// The limit belongs to the whole process: one test only, which puts it back.
@Suite(.serialized) struct ProcessLimitsTests {
    private static let descriptors = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    @Test func theSoftLimitOfDescriptorsRisesToTheHardOne() throws {
        var before = rlimit()
        try #require(getrlimit(Self.descriptors, &before) == 0)
        defer { setrlimit(Self.descriptors, &before) }
        // Not so low that tests that run beside this one miss a descriptor.
        var lowered = before
        lowered.rlim_cur = min(before.rlim_max, 900)
        try #require(setrlimit(Self.descriptors, &lowered) == 0)
        #expect(ProcessLimits.descriptorLimit == Int(lowered.rlim_cur))
        let hard = Int(clamping: before.rlim_max)
        #expect(ProcessLimits.raiseDescriptorLimit() == hard)
        #expect(ProcessLimits.descriptorLimit == hard)
        #expect(ProcessLimits.raiseDescriptorLimit() == hard)
        var after = rlimit()
        #expect(getrlimit(Self.descriptors, &after) == 0 && after.rlim_max == before.rlim_max)
    }
}
