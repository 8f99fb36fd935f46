#define _GNU_SOURCE
#include "include/secret_memory_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447 // the same number on every architecture that has it
#endif

// A page that a child could see, or that could not be kept from it, must hold no key.
static int keep_to_this_process(void *address, size_t size) {
    if (madvise(address, size, MADV_DONTFORK) != 0) {
        int error = errno;
        munmap(address, size);
        return error;
    }
    madvise(address, size, MADV_DONTDUMP);
    return 0;
}

int candado_map_secret(size_t size, void **address) {
    int descriptor = (int)syscall(SYS_memfd_secret, O_CLOEXEC);
    if (descriptor < 0) {
        return errno;
    }
    if (ftruncate(descriptor, (off_t)size) != 0) {
        int error = errno;
        close(descriptor);
        return error;
    }
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    int error = mapped == MAP_FAILED ? errno : 0;
    close(descriptor);
    if (error != 0) {
        return error;
    }
    error = keep_to_this_process(mapped, size);
    if (error == 0) {
        *address = mapped;
    }
    return error;
}

int candado_map_unlocked(size_t size, void **address) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return errno;
    }
    int error = keep_to_this_process(mapped, size);
    if (error == 0) {
        *address = mapped;
    }
    return error;
}

int candado_map_locked(size_t size, void **address) {
    void *mapped = NULL;
    int error = candado_map_unlocked(size, &mapped);
    if (error != 0) {
        return error;
    }
    if (mlock(mapped, size) != 0) {
        error = errno;
        munmap(mapped, size);
        return error;
    }
    *address = mapped;
    return 0;
}

void candado_unmap(void *address, size_t size) {
    munmap(address, size);
}

int candado_map_wiped_on_fork(void **address) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return errno;
    }
    if (madvise(mapped, size, MADV_WIPEONFORK) != 0) {
        int error = errno;
        munmap(mapped, size);
        return error;
    }
    *address = mapped;
    return 0;
}

int candado_random(void *bytes, size_t count) {
    unsigned char *next = bytes;
    while (count > 0) {
        ssize_t got = getrandom(next, count, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno;
        }
        next += got;
        count -= (size_t)got;
    }
    return 0;
}

void candado_zero(void *bytes, size_t count) {
    explicit_bzero(bytes, count);
}

__attribute__((noinline)) void candado_clear_stack(void) {
    unsigned char below[32 * 1024];
    explicit_bzero(below, sizeof below);
}

// The barrier after each step keeps the compiler from leaving the loop early once the outcome is known.
bool candado_is_zero(const void *bytes, size_t count) {
    const unsigned char *next = bytes;
    unsigned char seen = 0;
    for (size_t i = 0; i < count; i++) {
        seen |= next[i];
        __asm__ volatile("" : "+r"(seen));
    }
    return seen == 0;
}

bool candado_equal(const void *left, const void *right, size_t count) {
    const unsigned char *a = left;
    const unsigned char *b = right;
    unsigned char seen = 0;
    for (size_t i = 0; i < count; i++) {
        seen |= (unsigned char)(a[i] ^ b[i]);
        __asm__ volatile("" : "+r"(seen));
    }
    return seen == 0;
}

// The language's runtime may have put handlers there that print registers and the memory to which they point.
static int drop_crash_handlers(void) {
    static const int signals[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    int error = 0;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signal(signals[i], SIG_DFL) == SIG_ERR) {
            error = errno;
        }
    }
    return error;
}

int candado_harden_process(void) {
    int error = drop_crash_handlers();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        error = errno;
    }
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 && error == 0) {
        error = errno;
    }
    return error;
}
