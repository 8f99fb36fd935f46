#ifndef CANDADO_SECRET_MEMORY_SHIMS_H
#define CANDADO_SECRET_MEMORY_SHIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What SecretMemory needs of Linux that Swift cannot call: variadic functions, raw system calls, and operations whose
// meaning for memory the compiler must not optimise. Functions that return int give 0, or an errno.

/// Maps size bytes (whole pages) of secret memory (memfd_secret): outside the kernel's own map of memory, never swapped,
/// not dumped, not inherited by fork. The descriptor is closed again; the mapping lives on.
int candado_map_secret(size_t size, void **address);

/// Maps size bytes of private anonymous memory that is locked, not dumped and not inherited by fork.
int candado_map_locked(size_t size, void **address);

/// The same without the lock: what remains when the limit of locked memory is reached.
int candado_map_unlocked(size_t size, void **address);

/// Unmaps what one of the three gave.
void candado_unmap(void *address, size_t size);

/// Maps one page that reads as zeros in every forked child.
int candado_map_wiped_on_fork(void **address);

/// Reads the word at the start of such a page.
static inline uintptr_t candado_load_word(const void *address) {
    return __atomic_load_n((const uintptr_t *)address, __ATOMIC_ACQUIRE);
}

/// Puts `desired` there if it holds zero; gives what it holds afterwards.
static inline uintptr_t candado_store_word_if_zero(void *address, uintptr_t desired) {
    uintptr_t expected = 0;
    if (__atomic_compare_exchange_n((uintptr_t *)address, &expected, desired, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return desired;
    }
    return expected;
}

/// Fills with random bytes from the kernel.
int candado_random(void *bytes, size_t count);

/// Zeroes in a way that the compiler may not leave out.
void candado_zero(void *bytes, size_t count);

/// Zeroes the 32 KiB of stack below the caller's frame, where functions that have returned may have left secrets.
void candado_clear_stack(void);

/// True when every byte is zero. The time depends on the count alone.
bool candado_is_zero(const void *bytes, size_t count);

/// True when both hold the same bytes. The time depends on the count alone.
bool candado_equal(const void *left, const void *right, size_t count);

/// Makes this process undumpable and untraceable by its own user, and forbids core files.
int candado_harden_process(void);

#endif
