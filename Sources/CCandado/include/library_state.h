/* What the functions of candado.h keep outside of Swift. Not installed. */
#ifndef CANDADO_LIBRARY_STATE_H
#define CANDADO_LIBRARY_STATE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A word that reads as zero in every forked child, and 1 in the process in which it was mapped; NULL where there is none. */
extern uint32_t *candado_library_page;
/* The table of open files once it is there. Never freed. */
extern void *candado_library_files;

/* The table of open files, where this process may use what the library keeps; NULL for candado_library_first_use() to say
   why not, or that there is none yet. Before any lock is taken: one that another thread held at the fork stays taken in the
   child for ever. */
static inline void *candado_library_table(void) {
    if (candado_library_page == NULL || __atomic_load_n(candado_library_page, __ATOMIC_ACQUIRE) != 1) {
        return NULL;
    }
    return __atomic_load_n(&candado_library_files, __ATOMIC_ACQUIRE);
}

static inline void candado_library_set_table(void *table) {
    __atomic_store_n(&candado_library_files, table, __ATOMIC_RELEASE);
}

/* 0 when this process may use what the library keeps, and is marked as one that does; else an errno. */
int candado_library_first_use(void);

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
