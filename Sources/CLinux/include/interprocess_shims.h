// What processes need to talk to each other and Swift's view of glibc lacks: control messages, sealed memory, poll sets
// and operations on words in shared memory. Unless said otherwise a function returns what its last
// system call returned, with errno as that call set it. Descriptors that are made or received are close-on-exec.
#ifndef CANDADO_INTERPROCESS_SHIMS_H
#define CANDADO_INTERPROCESS_SHIMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

// Sockets of packets (AF_UNIX, SOCK_SEQPACKET)

// At most so many descriptors travel with one packet.
#define CANDADO_DESCRIPTORS_PER_PACKET 8

// The longest path that a socket's address holds, in bytes.
extern const int candado_longest_socket_path;

int candado_socket_pair(int descriptors[2]);
// The same as a stream of bytes.
int candado_stream_pair(int descriptors[2]);
// The path must not be longer than candado_longest_socket_path, nor empty.
int candado_listen(const char *path, int backlog);
// Seconds that connecting, and each packet sent through the connection, wait for room: EAGAIN beyond.
#define CANDADO_SEND_SECONDS 10
int candado_connect(const char *path);
int candado_accept(int listener);

struct candado_peer {
    int32_t process;
    uint32_t user;
    uint32_t group;
};
int candado_peer(int socket, struct candado_peer *peer);
// A descriptor of the peer process (SO_PEERPIDFD, Linux 6.5); ENOPROTOOPT where the kernel is older.
int candado_peer_process_descriptor(int socket);

// Sends one packet. With wait, waits for room even where the socket is non-blocking; where it blocks, for as long as the
// socket's own limit, if it has one.
ssize_t candado_send(int socket, const struct iovec *parts, size_t part_count, const int *descriptors,
                     size_t descriptor_count, int wait);

struct candado_received {
    int is_truncated;
    // This process has no number left for a descriptor that came.
    int lacks_descriptors;
    int descriptor_count;
    int descriptors[CANDADO_DESCRIPTORS_PER_PACKET];
};
// Receives one packet. When not all descriptors could be taken, all are closed and none is given.
ssize_t candado_receive(int socket, void *buffer, size_t size, int wait, struct candado_received *received);

// 1 when it can be read, 0 when the time is over. Goes on after a signal, with the time that is left.
int candado_wait_until_readable(int descriptor, int milliseconds);
// The same for writing.
int candado_wait_until_writable(int descriptor, int milliseconds);

// Shared memory

struct candado_mapping {
    void *address;
    // Bytes: whole pages.
    size_t size;
    int is_locked;
};
// Gives the descriptor. uses_new_calls 0 leaves aside what Linux 6.1 lacks.
int candado_make_shared_memory(size_t size, int writable_by_others, int locked, int uses_new_calls,
                               struct candado_mapping *mapping);
// EINVAL where an access could fail: the memory is shorter than size, can shrink, or is none of this kind. What is not
// writable is locked into memory where that can be done.
int candado_map_shared_memory(int descriptor, size_t size, int writable, struct candado_mapping *mapping);
void candado_unmap_shared_memory(void *address, size_t size);

// Waiting

struct candado_polled {
    uint64_t token;
    uint32_t events;
};
int candado_make_poll_set(void);
int candado_watch(int poll_set, int descriptor, uint32_t events, uint64_t token, int is_new);
int candado_unwatch(int poll_set, int descriptor);
// count is at most 64.
int candado_wait_for_poll_set(int poll_set, struct candado_polled *events, int count, int milliseconds);

int candado_make_timer(void);
// Zero for both stops it.
int candado_set_timer(int timer, int64_t seconds, int64_t nanoseconds);
int candado_make_waker(void);
int candado_make_signal_descriptor(const int *signals, size_t count);
// The number of the signal; EAGAIN when there is none.
int candado_next_signal(int descriptor);

// Words in shared memory. Plain functions of the caller's, so that no call stands between two of them.

static inline uint64_t candado_load_64(const void *word) {
    return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

static inline void candado_store_64(void *word, uint64_t value) {
    __atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
}

static inline uint32_t candado_load_32(const void *word) {
    return __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
}

static inline void candado_store_32(void *word, uint32_t value) {
    __atomic_store_n((uint32_t *)word, value, __ATOMIC_RELEASE);
}

static inline uint32_t candado_add_32(void *word, uint32_t value) {
    return __atomic_fetch_add((uint32_t *)word, value, __ATOMIC_SEQ_CST);
}

static inline uint32_t candado_subtract_32(void *word, uint32_t value) {
    return __atomic_fetch_sub((uint32_t *)word, value, __ATOMIC_SEQ_CST);
}

static inline void candado_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline void candado_copy_words(const void *from, void *to, size_t count) {
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)to;
    for (size_t i = 0; i < count; i++) {
        target[i] = __atomic_load_n(source + i, __ATOMIC_RELAXED);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

// The barrier keeps the compiler from leaving stores out, whatever it learns of what follows.
static inline void candado_clear_words(void *words, size_t count) {
    uint64_t *target = (uint64_t *)words;
    for (size_t i = 0; i < count; i++) {
        __atomic_store_n(target + i, 0, __ATOMIC_RELAXED);
    }
    __asm__ volatile("" : : "r"(words) : "memory");
}

// Negative milliseconds wait for ever.
// 0, or an errno: EBUSY when this thread holds a word already, EINVAL for a word that is not aligned.
int candado_hold_robustly(void *word);

#endif
