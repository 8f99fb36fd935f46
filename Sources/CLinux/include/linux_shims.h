// What Swift's view of glibc lacks: calls that are declared only under _GNU_SOURCE, that are variadic, or that have no
// wrapper at all. Each is one system call, returns what the call returns, and leaves errno as the call set it.
// _FILE_OFFSET_BITS must never be defined here: Swift then sees two different definitions of struct flock.
#ifndef CANDADO_LINUX_SHIMS_H
#define CANDADO_LINUX_SHIMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>
#include <sys/xattr.h>

// O_TMPFILE and O_PATH.
extern const int candado_open_unnamed;
extern const int candado_open_path_only;
// RENAME_NOREPLACE and RENAME_EXCHANGE.
extern const unsigned int candado_rename_no_replace;
extern const unsigned int candado_rename_exchange;

int candado_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags);
// linkat of an open file, which may have no name. Works without privilege, through /proc.
int candado_link_descriptor(int descriptor, int directory, const char *path);
int candado_allocate(int descriptor, int64_t offset, int64_t length);
int candado_synchronize_file_system(int descriptor);
ssize_t candado_read_directory(int descriptor, void *buffer, size_t size);

// getxattrat (Linux 6.13) without following a symbolic link at the end; ENOSYS where the kernel is older.
ssize_t candado_attribute_at(int directory, const char *path, const char *name, void *value, size_t size);
// 1 when the kernel has it.
int candado_has_attribute_at(void);
// The same for older kernels: lgetxattr, through /proc/self/fd when the path begins at a descriptor.
ssize_t candado_attribute_by_joined_path(int directory, const char *path, const char *name, void *value, size_t size);
// What libattr's policy says of copying an attribute: 0 copy, 1 skip, 2 belongs to the permissions. Not thread-safe.
int candado_attribute_policy(const char *name);

// Open-file-description locks; type is F_RDLCK, F_WRLCK or F_UNLCK.
int candado_lock_range(int descriptor, int type, int64_t start, int64_t count, int wait);
// 1 when another open file holds any lock in the range, 0 when none does.
int candado_range_is_locked(int descriptor, int64_t start, int64_t count);
// A read lease whose breaking signal is one that is ignored by default.
int candado_take_read_lease(int descriptor);
// F_RDLCK while the lease is held.
int candado_lease(int descriptor);
int candado_drop_lease(int descriptor);

struct candado_file_system {
    int64_t type;
    int64_t available_bytes;
    int read_only;
};
int candado_file_system_status(int descriptor, struct candado_file_system *status);

// The C library's sentence and symbol for an errno, or NULL. Constants, the same in every locale.
const char *candado_error_sentence(int error_number);
const char *candado_error_symbol(int error_number);

#endif
