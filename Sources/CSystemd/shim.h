#ifndef CANDADO_CSYSTEMD_SHIM_H
#define CANDADO_CSYSTEMD_SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>

// `fcntl` is variadic, which Swift does not import. Returns 0, or a negative errno.
static inline int candado_set_non_blocking(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
    return 0;
}

// Frees a text that libsystemd made.
static inline void candado_free_text(char *text) { free(text); }

#endif
