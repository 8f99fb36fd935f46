#define _GNU_SOURCE
#include "candado.h"
#include "library_state.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The layouts are part of the interface. */
typedef char candado_record_has_132_bytes[sizeof(struct candado_record) == 132 ? 1 : -1];
typedef char candado_wrap_is_at_28[offsetof(struct candado_record, wrap) == 28 ? 1 : -1];
typedef char candado_event_has_24_bytes[sizeof(struct candado_event) == 24 ? 1 : -1];
typedef char candado_grace_is_at_16[offsetof(struct candado_event, grace_milliseconds) == 16 ? 1 : -1];

const char *candado_version(void) {
    return CANDADO_VERSION;
}

/* ---- The fork mark ------------------------------------------------------------------------------------------------- */

uint32_t *candado_library_page = NULL;
void *candado_library_files = NULL;
/* 1 once there may be something that does not pass to a forked child. */
static uint32_t is_used = 0;

/* When the library is loaded, before any of its functions can run. */
__attribute__((constructor)) static void map_page(void) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return;
    }
    if (madvise(mapped, size, MADV_WIPEONFORK) != 0) {
        munmap(mapped, size);
        return;
    }
    *(uint32_t *)mapped = 1;
    candado_library_page = mapped;
}

int candado_library_first_use(void) {
    uint32_t *page = candado_library_page;
    if (page == NULL) {
        return ENOMEM;
    }
    if (__atomic_load_n(page, __ATOMIC_ACQUIRE) == 0) {
        if (__atomic_load_n(&is_used, __ATOMIC_ACQUIRE) == 1) {
            /* Another thread of a child that was forked in time may have come first: it wrote the page, then this. */
            return __atomic_load_n(page, __ATOMIC_ACQUIRE) == 1 ? 0 : ESTALE;
        }
        __atomic_store_n(page, 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&is_used, 1, __ATOMIC_RELEASE);
    return 0;
}

/* ---- The last failure of each thread ------------------------------------------------------------------------------- */

static __thread struct {
    int kind;
    size_t length;
    char text[1024];
} last;

void candado_library_note(int kind, const char *text, size_t size) {
    if (size > sizeof last.text - 1) {
        size = sizeof last.text - 1;
        while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80) {
            size--;
        }
    }
    last.kind = kind;
    if (size > 0) {
        memcpy(last.text, text, size);
    }
    last.text[size] = '\0';
    last.length = size;
}

size_t candado_library_give(const char *text, size_t length, char *buffer, size_t size) {
    if (buffer != NULL && size > 0) {
        size_t count = length < size ? length : size - 1;
        memcpy(buffer, text, count);
        buffer[count] = '\0';
    }
    return length;
}

size_t candado_error(char *buffer, size_t size) {
    return candado_library_give(last.text, last.length, buffer, size);
}

int candado_error_kind(void) {
    return last.kind;
}

const char *candado_error_text(int error_number) {
    switch (error_number) {
        case 0: return "nothing failed";
        case ENOKEY: return "the key is not available: the class is locked, or the file belongs to another keybag, or there is no keybag";
        case EBADMSG: return "damaged: the key record, the header or the content is not what was written";
        case ENODATA: return "the file is not protected, or its key record is missing";
        case EOPNOTSUPP: return "not supported: a format from a newer version, or a kind of file or a file system that cannot be protected";
        case ECONNREFUSED: return "the agent does not run, or cannot be talked to";
        case EBUSY: return "somebody else is working on the file, or the agent is at one of its limits";
        case EEXIST: return "the name is taken, or another key record is there";
        case EBADF: return "no open handle or descriptor, or one that may only read";
        case ESTALE: return "a forked child cannot use what is its parent's: it has to call exec";
        case EINVAL: return "an argument makes no sense";
        case EFAULT: return "an argument is NULL that must not be";
        case ERANGE: return "the buffer is too small";
        case EPIPE: return "no more events will come";
        case EKEYREJECTED: return "the passcode is not the right one";
        case EAGAIN: return "too many wrong passcodes: wait before the next try";
        case ECANCELED: return "a lock came before it was done";
        case EPERM: return "not permitted, or no passcode is set, or the file is in another class";
        case ENOMEM: return "no memory, or none for secrets (RLIMIT_MEMLOCK)";
        case EIO: return "input or output failed, or the cryptographic library did";
        case ENOENT: return "no such file or directory";
        case EACCES: return "permission denied";
        case EFBIG: return "the file would grow too large";
        case ENOSPC: return "no space is left: a whole file is as it was, an open one may have grown in part";
        case EROFS: return "the file system is mounted read-only";
        case EDQUOT: return "the quota is used up: a whole file is as it was, an open one may have grown in part";
        case EMFILE: return "this process has too many files open";
        case ENFILE: return "the system has too many files open";
        case ENOTDIR: return "a part of the path is no directory";
        case EISDIR: return "this is a directory";
        case ELOOP: return "too many symbolic links";
        case ENAMETOOLONG: return "the path is too long";
        default: break;
    }
    const char *text = strerrordesc_np(error_number);
    return text != NULL ? text : "an unknown error";
}

/* ---- Memory -------------------------------------------------------------------------------------------------------- */

void candado_free(void *bytes) {
    if (bytes == NULL) {
        return;
    }
    int number = errno;
    explicit_bzero(bytes, malloc_usable_size(bytes));
    free(bytes);
    errno = number;
}
