#define _GNU_SOURCE
#include "linux_shims.h"

#include <attr/libattr.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

const int candado_open_unnamed = O_TMPFILE;
const int candado_open_path_only = O_PATH;
const unsigned int candado_rename_no_replace = RENAME_NOREPLACE;
const unsigned int candado_rename_exchange = RENAME_EXCHANGE;

int candado_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags) {
    // Plain renameat where no flag is asked for: some file systems refuse renameat2 altogether.
    if (flags == 0) return renameat(from_directory, from, to_directory, to);
    return renameat2(from_directory, from, to_directory, to, flags);
}

int candado_link_descriptor(int descriptor, int directory, const char *path) {
    char source[32];
    snprintf(source, sizeof source, "/proc/self/fd/%d", descriptor);
    int result = linkat(AT_FDCWD, source, directory, path, AT_SYMLINK_FOLLOW);
    // Without /proc: AT_EMPTY_PATH, which kernels before 6.10 allow only to the privileged.
    if (result == -1 && errno == ENOENT) result = linkat(descriptor, "", directory, path, AT_EMPTY_PATH);
    return result;
}

int candado_allocate(int descriptor, int64_t offset, int64_t length) {
    return fallocate(descriptor, 0, offset, length);
}

int candado_synchronize_file_system(int descriptor) { return syncfs(descriptor); }

ssize_t candado_read_directory(int descriptor, void *buffer, size_t size) {
    return syscall(SYS_getdents64, descriptor, buffer, size);
}

#ifndef SYS_getxattrat
// The number is the same on every architecture: calls since 5.1 share one table.
#define SYS_getxattrat 464
#endif

struct candado_attribute_arguments {
    uint64_t value __attribute__((aligned(8)));
    uint32_t size;
    uint32_t flags;
};

ssize_t candado_attribute_at(int directory, const char *path, const char *name, void *value, size_t size) {
    struct candado_attribute_arguments arguments = {
        .value = (uint64_t)(uintptr_t)value, .size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, .flags = 0};
    return syscall(SYS_getxattrat, directory, path, AT_SYMLINK_NOFOLLOW, name, &arguments, sizeof arguments);
}

int candado_has_attribute_at(void) {
    // Some sandboxes answer EPERM to calls they do not know; a missing attribute of / is ENODATA or ENOTSUP.
    ssize_t result = candado_attribute_at(AT_FDCWD, "/", "user.candado", NULL, 0);
    return result >= 0 || (errno != ENOSYS && errno != EPERM);
}

ssize_t candado_attribute_by_joined_path(int directory, const char *path, const char *name, void *value, size_t size) {
    // An empty path is no file, though the joined one would be the directory.
    if (directory == AT_FDCWD || path[0] == '/' || path[0] == 0) return lgetxattr(path, name, value, size);
    char joined[4096 + 32];
    int length = snprintf(joined, sizeof joined, "/proc/self/fd/%d/%s", directory, path);
    if (length < 0 || (size_t)length >= sizeof joined) {
        errno = ENAMETOOLONG;
        return -1;
    }
    ssize_t result = lgetxattr(joined, name, value, size);
    if (result == -1 && errno == ENOENT) {
        // Told apart from a missing file: without /proc nothing can be said.
        errno = access("/proc/self/fd", F_OK) == 0 ? ENOENT : ENOSYS;
    }
    return result;
}

int candado_attribute_policy(const char *name) { return attr_copy_action(name, NULL); }

int candado_lock_range(int descriptor, int type, int64_t start, int64_t count, int wait) {
    struct flock range;
    memset(&range, 0, sizeof range);
    range.l_type = (short)type;
    range.l_whence = SEEK_SET;
    range.l_start = start;
    range.l_len = count;
    return fcntl(descriptor, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
}

int candado_range_is_locked(int descriptor, int64_t start, int64_t count)
{
    // Asking for an exclusive lock finds shared ones too, and asking needs no right to write.
    struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = count, .l_pid = 0 };
    if (fcntl(descriptor, F_OFD_GETLK, &range) != 0)
        return -1;
    return range.l_type != F_UNLCK;
}

int candado_take_read_lease(int descriptor) {
    // The signal that tells of a breaker is SIGIO unless set, and SIGIO ends the process. SIGURG is ignored by default.
    if (fcntl(descriptor, F_SETSIG, SIGURG) == -1) return -1;
    return fcntl(descriptor, F_SETLEASE, F_RDLCK);
}

int candado_lease(int descriptor) { return fcntl(descriptor, F_GETLEASE); }

int candado_drop_lease(int descriptor) { return fcntl(descriptor, F_SETLEASE, F_UNLCK); }

int candado_file_system_status(int descriptor, struct candado_file_system *status) {
    struct statfs raw;
    if (fstatfs(descriptor, &raw) == -1) return -1;
    status->type = (int64_t)raw.f_type;
    int64_t unit = raw.f_frsize > 0 ? (int64_t)raw.f_frsize : (int64_t)raw.f_bsize;
    if (__builtin_mul_overflow((int64_t)raw.f_bavail, unit, &status->available_bytes))
        status->available_bytes = INT64_MAX;
    status->read_only = (raw.f_flags & 1 /* ST_RDONLY */) != 0;
    return 0;
}

const char *candado_error_sentence(int error_number) { return strerrordesc_np(error_number); }

const char *candado_error_symbol(int error_number) { return strerrorname_np(error_number); }
