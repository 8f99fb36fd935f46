import Testing

@testable import AgentProtocol
