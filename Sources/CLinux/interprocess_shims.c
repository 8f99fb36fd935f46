#define _GNU_SOURCE
#include "include/interprocess_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

// Closes without touching errno, and gives -1 to return.
static int closed(int descriptor) {
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

// Sockets

const int candado_longest_socket_path = sizeof((struct sockaddr_un *)0)->sun_path - 1;

int candado_socket_pair(int descriptors[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, descriptors);
}

int candado_stream_pair(int descriptors[2]) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, descriptors);
}

static int make_address(const char *path, struct sockaddr_un *address) {
    size_t length = strlen(path);
    // An empty path would be a name that the kernel makes up, outside the file system.
    if (length == 0 || length > (size_t)candado_longest_socket_path) {
        errno = length == 0 ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, length);
    return 0;
}

// The file has the socket's own permissions less the umask: never more than 0600. What the umask took is given back
// through a descriptor of the file itself, so that no other file can be met.
static int give_owner_permissions(const char *path) {
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file == -1) return -1;
    struct stat status;
    if (fstat(file, &status) == -1) return closed(file);
    if (!S_ISSOCK(status.st_mode)) {
        errno = EEXIST;
        return closed(file);
    }
    if ((status.st_mode & 07777) != 0600) {
        // fchmod refuses such a descriptor; its name in /proc leads to the same file.
        char name[32];
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        if (chmod(name, 0600) == -1) return closed(file);
    }
    close(file);
    return 0;
}

int candado_listen(const char *path, int backlog) {
    struct sockaddr_un address;
    if (make_address(path, &address) == -1) return -1;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener == -1) return -1;
    // Before bind, so that the file has them from its first moment; the umask belongs to all threads and stays.
    if (fchmod(listener, 0600) == -1) return closed(listener);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) == -1) return closed(listener);
    if (give_owner_permissions(path) == -1 || listen(listener, backlog) == -1) {
        int error = errno;
        unlink(path);
        errno = error;
        return closed(listener);
    }
    return listener;
}

int candado_connect(const char *path) {
    struct sockaddr_un address;
    if (make_address(path, &address) == -1) return -1;
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection == -1) return -1;
    // Nobody waits for ever for a process that is stopped. Connecting honours it too: a full queue is EAGAIN then.
    struct timeval limit = {.tv_sec = CANDADO_SEND_SECONDS};
    if (setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == -1) return closed(connection);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) == -1) return closed(connection);
    return connection;
}

int candado_accept(int listener) { return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

int candado_peer(int socket, struct candado_peer *peer) {
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == -1) return -1;
    peer->process = credentials.pid;
    peer->user = credentials.uid;
    peer->group = credentials.gid;
    return 0;
}

int candado_peer_process_descriptor(int socket) {
    int descriptor = -1;
    socklen_t size = sizeof descriptor;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) == -1) return -1;
    return descriptor;
}

// 1 when the descriptor is ready, broken or at its end: the call that follows tells which.
static int wait_once(int descriptor, short events, int milliseconds) {
    struct pollfd one = {.fd = descriptor, .events = events, .revents = 0};
    int result = poll(&one, 1, milliseconds);
    if (result == 1 && (one.revents & POLLNVAL)) {
        errno = EBADF;
        return -1;
    }
    return result;
}

// Room for the control message of a full packet.
union control {
    char bytes[CMSG_SPACE(sizeof(int) * CANDADO_DESCRIPTORS_PER_PACKET)];
    struct cmsghdr alignment;
};

ssize_t candado_send(int socket, const struct iovec *parts, size_t part_count, const int *descriptors,
                     size_t descriptor_count, int wait) {
    if (descriptor_count > CANDADO_DESCRIPTORS_PER_PACKET) {
        errno = EINVAL;
        return -1;
    }
    union control control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = part_count};
    if (descriptor_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptor_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * descriptor_count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * descriptor_count);
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
        if (sent >= 0 || !wait || errno != EAGAIN) return sent;
        // A socket that blocks has waited as long as it may.
        int flags = fcntl(socket, F_GETFL);
        if (flags != -1 && !(flags & O_NONBLOCK)) {
            errno = EAGAIN;
            return -1;
        }
        if (wait_once(socket, POLLOUT, -1) == -1) return -1;
    }
}

ssize_t candado_receive(int socket, void *buffer, size_t size, int wait, struct candado_received *received) {
    union control control;
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message;
    ssize_t count;
    for (;;) {
        memset(&message, 0, sizeof message);
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
        if (count >= 0) break;
        if (!wait || errno != EAGAIN) return -1;
        if (wait_once(socket, POLLIN, -1) == -1) return -1;
    }
    received->is_truncated = (message.msg_flags & MSG_TRUNC) != 0;
    received->descriptor_count = 0;
    int too_many = (message.msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
            if (received->descriptor_count < CANDADO_DESCRIPTORS_PER_PACKET) {
                received->descriptors[received->descriptor_count++] = descriptor;
            } else {
                close(descriptor);
                too_many = 1;
            }
        }
    }
    // The kernel says the same of both: but more than there is room for fill the room.
    received->lacks_descriptors = too_many && received->descriptor_count < CANDADO_DESCRIPTORS_PER_PACKET;
    if (too_many) {
        for (int i = 0; i < received->descriptor_count; i++) close(received->descriptors[i]);
        received->descriptor_count = 0;
    }
    return count;
}

static int64_t monotonic_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_for(int descriptor, short events, int milliseconds) {
    int64_t end = milliseconds < 0 ? 0 : monotonic_milliseconds() + milliseconds;
    int left = milliseconds < 0 ? -1 : milliseconds;
    for (;;) {
        int result = wait_once(descriptor, events, left);
        if (result != -1 || errno != EINTR) return result;
        if (milliseconds < 0) continue;
        int64_t rest = end - monotonic_milliseconds();
        left = rest > 0 ? (int)rest : 0;
    }
}

int candado_wait_until_readable(int descriptor, int milliseconds) { return wait_for(descriptor, POLLIN, milliseconds); }

int candado_wait_until_writable(int descriptor, int milliseconds) { return wait_for(descriptor, POLLOUT, milliseconds); }

// Shared memory

static size_t whole_pages(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

// A child that could see it would be a client of which nobody knows.
static int keep_to_this_process(void *address, size_t size) {
    if (madvise(address, size, MADV_DONTFORK) == -1) {
        int error = errno;
        munmap(address, size);
        errno = error;
        return -1;
    }
    madvise(address, size, MADV_DONTDUMP);
    return 0;
}

int candado_make_shared_memory(size_t size, int writable_by_others, int locked, int uses_new_calls,
                               struct candado_mapping *mapping) {
    size_t whole = whole_pages(size);
    if (size == 0 || whole > (size_t)INT64_MAX) {
        errno = EINVAL;
        return -1;
    }
    // Some systems refuse memory that could be executed; kernels before 6.3 do not know the flag that says it cannot.
    int descriptor = -1;
    errno = EINVAL;
    if (uses_new_calls) descriptor = memfd_create("candado", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (descriptor == -1 && errno == EINVAL) descriptor = memfd_create("candado", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor == -1) return -1;
    if (ftruncate(descriptor, (off_t)whole) == -1) return closed(descriptor);
    void *address = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) return closed(descriptor);
    if (keep_to_this_process(address, whole) == -1) return closed(descriptor);
    // After our own mapping exists: the seal against writing spares only what is mapped already.
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (writable_by_others ? 0 : F_SEAL_FUTURE_WRITE);
    if (fcntl(descriptor, F_ADD_SEALS, seals) == -1) {
        int error = errno;
        munmap(address, whole);
        errno = error;
        return closed(descriptor);
    }
    mapping->address = address;
    mapping->size = whole;
    mapping->is_locked = locked && mlock(address, whole) == 0;
    return descriptor;
}

int candado_map_shared_memory(int descriptor, size_t size, int writable, struct candado_mapping *mapping) {
    size_t whole = whole_pages(size);
    struct stat status;
    if (fstat(descriptor, &status) == -1) return -1;
    struct statfs place;
    if (fstatfs(descriptor, &place) == -1) return -1;
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals == -1 && errno != EINVAL) return -1;
    // Memory of huge pages has seals too, but an access fails when the machine runs out of them.
    if (size == 0 || status.st_size < 0 || (size_t)status.st_size < size || seals == -1 || !(seals & F_SEAL_SHRINK) ||
        place.f_type != TMPFS_MAGIC) {
        errno = EINVAL;
        return -1;
    }
    void *address = mmap(NULL, whole, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) return -1;
    if (keep_to_this_process(address, whole) == -1) return -1;
    mapping->address = address;
    mapping->size = whole;
    // What can only be read may hold keys, and may outlive the process that made it and had it locked.
    mapping->is_locked = !writable && mlock(address, whole) == 0;
    return 0;
}

void candado_unmap_shared_memory(void *address, size_t size) { munmap(address, size); }

// Waiting

int candado_make_poll_set(void) { return epoll_create1(EPOLL_CLOEXEC); }

int candado_watch(int poll_set, int descriptor, uint32_t events, uint64_t token, int is_new) {
    struct epoll_event event = {.events = events, .data = {.u64 = token}};
    return epoll_ctl(poll_set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event);
}

int candado_unwatch(int poll_set, int descriptor) {
    struct epoll_event unused = {0};
    return epoll_ctl(poll_set, EPOLL_CTL_DEL, descriptor, &unused);
}

int candado_wait_for_poll_set(int poll_set, struct candado_polled *events, int count, int milliseconds) {
    struct epoll_event raw[64];
    int result = epoll_wait(poll_set, raw, count > 64 ? 64 : count, milliseconds);
    for (int i = 0; i < result; i++) {
        events[i].token = raw[i].data.u64;
        events[i].events = raw[i].events;
    }
    return result;
}

int candado_make_timer(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

int candado_set_timer(int timer, int64_t seconds, int64_t nanoseconds) {
    struct itimerspec time = {.it_value = {.tv_sec = (time_t)seconds, .tv_nsec = (long)nanoseconds}};
    return timerfd_settime(timer, TFD_TIMER_ABSTIME, &time, NULL);
}

int candado_make_waker(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int candado_make_signal_descriptor(const int *signals, size_t count) {
    sigset_t set, before;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        if (sigaddset(&set, signals[i]) == -1) return -1;
    }
    int error = pthread_sigmask(SIG_BLOCK, &set, &before);
    if (error != 0) {
        errno = error;
        return -1;
    }
    int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor == -1) {
        error = errno;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = error;
    }
    return descriptor;
}

int candado_next_signal(int descriptor) {
    struct signalfd_siginfo info;
    ssize_t count = read(descriptor, &info, sizeof info);
    if (count == -1) return -1;
    if (count != sizeof info) {
        errno = EIO;
        return -1;
    }
    return (int)info.ssi_signo;
}

// Words in shared memory

// The list that the kernel walks when the thread ends: one entry, whose word lies futex_offset behind it. Any distance
// is allowed, so the entry need not lie in the shared memory, where others could change it.
struct held_word {
    struct robust_list_head head;
    struct robust_list entry;
};

int candado_hold_robustly(void *word) {
    static __thread struct held_word *held_here = NULL;
    if ((uintptr_t)word % sizeof(uint32_t) != 0) return EINVAL;
    struct robust_list_head *current = NULL;
    size_t size = 0;
    if (syscall(SYS_get_robust_list, 0, &current, &size) == -1) return errno;
    // After a fork the child has the variable, but the C library has set its own list anew.
    if (held_here != NULL && current == &held_here->head) return EBUSY;
    struct held_word *held = calloc(1, sizeof *held);
    if (held == NULL) return ENOMEM;
    held->head.list.next = &held->entry;
    held->head.futex_offset = (long)((intptr_t)word - (intptr_t)&held->entry);
    held->entry.next = &held->head.list;
    if (syscall(SYS_set_robust_list, &held->head, sizeof held->head) == -1) {
        int error = errno;
        free(held);
        return error;
    }
    held_here = held;
    // Last: a thread that dies before this never held it.
    candado_store_32(word, (uint32_t)syscall(SYS_gettid));
    return 0;
}
