import Testing

@testable import AgentClient
