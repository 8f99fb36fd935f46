import COpenSSL
import Glibc

/// A list of OpenSSL parameters and the memory that they point to. Octets stay the caller's: they must outlive
/// ``use(_:)``.
final class Parameters {
    private var list: [OSSL_PARAM] = []
    private var texts: [UnsafeMutablePointer<CChar>] = []
    private var numbers: [UnsafeMutablePointer<UInt64>] = []

    func add(_ name: String, text: String) {
        guard let name = copy(name), let text = copy(text) else { return }
        list.append(OSSL_PARAM_construct_utf8_string(name, text, 0))
    }

    func add(_ name: String, octets: UnsafeRawBufferPointer) {
        guard let name = copy(name) else { return }
        list.append(
            OSSL_PARAM_construct_octet_string(name, UnsafeMutableRawPointer(mutating: octets.baseAddress), octets.count)
        )
    }

    func add(_ name: String, number: UInt64) {
        guard let name = copy(name) else { return }
        let place = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
        place.initialize(to: number)
        numbers.append(place)
        list.append(OSSL_PARAM_construct_uint64(name, place))
    }

    /// Shows the list, with its end mark.
    func use<R>(_ body: (UnsafePointer<OSSL_PARAM>?) throws(CryptographyError) -> R) throws(CryptographyError) -> R {
        let ended = list + [OSSL_PARAM_construct_end()]
        return try ended.withUnsafeBufferPointer { (list) throws(CryptographyError) in try body(list.baseAddress) }
    }

    private func copy(_ text: String) -> UnsafeMutablePointer<CChar>? {
        guard let copied = strdup(text) else { return nil }
        texts.append(copied)
        return copied
    }

    deinit {
        texts.forEach { free($0) }
        numbers.forEach { $0.deallocate() }
    }
}
