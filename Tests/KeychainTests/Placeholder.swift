import Keychain
