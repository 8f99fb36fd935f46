import Keychain
import Security

// What the blocks of code in the keychain's pages and comments use and do not declare: scripts/test-packages compiles each
// of them with this file, and with the file of its page's name if there is one.

let home: KeybagHome = KeybagHome(directory: "home")

func showLogin() {}
func showLocked() {}
func tryAgainLater() {}
func show(_ error: KeychainError) {}
func use(_ session: some Sendable) {}
func send(_ bytes: UnsafeRawBufferPointer) {}

// Of the page for iOS developers.
nonisolated(unsafe) let query: CFDictionary = [kSecClass: kSecClassGenericPassword] as CFDictionary
func use(_ result: AnyObject?) {}
func makeOne() {}
func waitForTheUnlock() {}
func show(_ status: OSStatus) {}
