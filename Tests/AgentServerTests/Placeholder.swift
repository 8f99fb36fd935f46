import Testing

@testable import AgentServer
