// The one file that Linux needs: now everything that imports Foundation in this target has the keychain too.
#if os(Linux)
    @_exported import Security
#endif
