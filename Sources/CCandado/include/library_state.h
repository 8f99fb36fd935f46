/* What the functions of candado.h keep outside of Swift. Not installed. */
#ifndef CANDADO_LIBRARY_STATE_H
#define CANDADO_LIBRARY_STATE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A word that reads as zero in every forked child, and 1 in the process in which it was mapped; NULL where there is none. */
extern uint32_t *candado_library_page;
/* 1 once there may be something that does not pass to a forked child. */
extern uint32_t candado_library_used;

/* 0 when this process may use what the library keeps, else an errno. Before any lock is taken: one that another thread held
   at the fork stays taken in the child for ever. */
int candado_library_first_use(void);

static inline int candado_library_check(void) {
    if (candado_library_page != NULL && __atomic_load_n(candado_library_page, __ATOMIC_ACQUIRE) == 1 &&
        __atomic_load_n(&candado_library_used, __ATOMIC_ACQUIRE) == 1) {
        return 0;
    }
    return candado_library_first_use();
}

/* Notes the last failure in this thread. The text need not end with a NUL; what is too long is cut between characters. */
void candado_library_note(int kind, const char *text, size_t size);

/* The last thing that a function does: a negative result is an errno. */
static inline int64_t candado_library_result(int64_t result) {
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Puts a text into a caller's buffer as snprintf does. */
size_t candado_library_give(const char *text, size_t length, char *buffer, size_t size);

#endif
