import Foundation
import Keychain
import KeychainModel

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Adds an item. `attributes` say its class, what it is found by, and its secret (`kSecValueData`); with a `kSecReturn…` key,
/// what was added comes in `result`.
///
/// Returns ``errSecSuccess``, ``errSecDuplicateItem`` when an item with the same primary key is there,
/// ``errSecInteractionNotAllowed`` while locked, ``errSecParam`` for attributes that make no sense, or another `errSec…` code;
/// then nothing was added and `result` is untouched. Thread-safe; blocks until the keychain has answered.
@discardableResult
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    perform { () throws(KeychainError) in
        try answer(attributes, result) { .add($0) }
    }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Finds items, and returns of them what the `kSecReturn…` keys ask for: of one, or of as many as `kSecMatchLimit` allows.
///
/// Returns ``errSecSuccess``, ``errSecItemNotFound`` when nothing matches, ``errSecInteractionNotAllowed`` when what matches
/// cannot be opened now, ``errSecParam`` for a query that makes no sense, or another `errSec…` code; then `result` is
/// untouched. Thread-safe; blocks until the keychain has answered.
@discardableResult
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    perform { () throws(KeychainError) in
        try answer(query, result) { .find($0) }
    }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Changes attributes of all items that match, the secret (`kSecValueData`) among them.
///
/// Returns ``errSecSuccess``, ``errSecItemNotFound`` when nothing matches, ``errSecDuplicateItem`` when an item would get the
/// primary key of another, ``errSecInteractionNotAllowed`` while locked, or another `errSec…` code; then nothing was changed.
/// Thread-safe; blocks until the keychain has answered.
@discardableResult
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
    perform { () throws(KeychainError) in
        let query = try QueryReader.read(query)
        let attributes = try QueryReader.read(attributesToUpdate)
        try Keychain.currentService().perform(.update(query, to: attributes), each: ignore)
    }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// Deletes all items that match.
///
/// Returns ``errSecSuccess``, ``errSecItemNotFound`` when nothing matches, or another `errSec…` code; then nothing was
/// deleted. Thread-safe; blocks until the keychain has answered.
@discardableResult
public func SecItemDelete(_ query: CFDictionary) -> OSStatus {
    perform { () throws(KeychainError) in
        let query = try QueryReader.read(query)
        try Keychain.currentService().perform(.delete(query), each: ignore)
    }
}

private func perform(_ body: () throws(KeychainError) -> Void) -> OSStatus {
    do throws(KeychainError) {
        try body()
        return errSecSuccess
    } catch {
        return error.code.status
    }
}

private func answer(
    _ dictionary: NSDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?,
    _ request: (ItemDictionary) -> KeychainRequest
) throws(KeychainError) {
    let query = try QueryReader.read(dictionary)
    let shape = ResultShape(of: query)
    if !shape.isNothing, result == nil {
        throw KeychainError(.malformed, "something is to be returned, and there is no place for it")
    }
    let service = try Keychain.currentService()
    guard !shape.isNothing, let result else {
        try service.perform(request(query), each: ignore)
        return
    }
    let (results, _) = try service.perform(request(query))
    result.pointee = shape.answer(results)
}

private func ignore(_ result: ItemResult) throws(KeychainError) {}
