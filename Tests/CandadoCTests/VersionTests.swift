import CCandado
import CandadoC
import Testing

@Suite struct VersionTests {
    @Test func theVersionIsThreeNumbers() throws {
        let text = String(cString: try #require(candado_version()))
        #expect(text.split(separator: ".").compactMap { Int($0) }.count == 3)
    }
}
