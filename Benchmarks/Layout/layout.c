/* Measures where a container should keep the nonce and tag (the "seal", 40 bytes) of each chunk.
 *
 *   row          chunk of 4096 bytes, then its seal, one after the other, after a header block of 4096
 *   block        chunk of 4056 bytes and its seal share one aligned block of 4096
 *   seal-blocks  aligned chunks of 4096 bytes; block 0 is 1024 bytes of header and 76 seals, and before each further
 *                102 chunks lies one block with their 102 seals
 *   plain        no sealing at all: the floor
 *
 * Every chunk is sealed with XAES-256-GCM: two AES-256-ECB blocks give the chunk's own key, then AES-256-GCM.
 * Overwrites are done in place, without a redo log: the log costs the same whatever the layout.
 *
 * Usage: layout DIRECTORY WORK LAYOUT, prints "seconds cpu-seconds MiB-read-from-the-device" of one run.
 *        layout DIRECTORY sizes, prints the disk use of small files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { blockSize = 4096, sealSize = 40, nonceSize = 24, tagSize = 16, firstSeals = 76, groupSeals = 102, headerSize = 1024 };
static const uint64_t plainSize = 512ull << 20;

static void check(int good, const char *what) {
    if (!good) { fprintf(stderr, "layout: %s: %s\n", what, strerror(errno)); exit(1); }
}

/* ---- XAES-256-GCM (C2SP) ---- */
static EVP_CIPHER *gcm;
static EVP_CIPHER_CTX *ecbContext, *gcmContext;
static uint8_t subkeyMask[16];

static void cipherSetUp(void) {
    uint8_t key[32], zero[16] = {0};
    int n;
    for (int i = 0; i < 32; i++) key[i] = (uint8_t)(i + 1);  /* fixed: each work runs in a process of its own */
    EVP_CIPHER *ecb = EVP_CIPHER_fetch(NULL, "AES-256-ECB", NULL);
    gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    ecbContext = EVP_CIPHER_CTX_new();
    gcmContext = EVP_CIPHER_CTX_new();
    check(EVP_EncryptInit_ex2(ecbContext, ecb, key, NULL, NULL), "ECB");
    EVP_CIPHER_CTX_set_padding(ecbContext, 0);
    check(EVP_EncryptUpdate(ecbContext, subkeyMask, &n, zero, 16), "ECB");
    int carry = subkeyMask[0] >> 7;
    for (int i = 0; i < 15; i++) subkeyMask[i] = (uint8_t)(subkeyMask[i] << 1 | subkeyMask[i + 1] >> 7);
    subkeyMask[15] = (uint8_t)(subkeyMask[15] << 1 ^ (carry ? 0x87 : 0));
    check(EVP_EncryptInit_ex2(gcmContext, gcm, NULL, NULL, NULL), "GCM");
}

static void chunkKey(const uint8_t *nonce, uint8_t *key) {
    uint8_t in[32] = {0, 1, 'X', 0};
    int n;
    memcpy(in + 4, nonce, 12);
    memcpy(in + 16, in, 16);
    in[17] = 2;
    for (int i = 0; i < 32; i++) in[i] ^= subkeyMask[i & 15];
    EVP_EncryptUpdate(ecbContext, key, &n, in, 32);
}

static void nextNonce(uint8_t *nonce) {  /* one system call for 170 nonces, as a library would */
    static uint8_t pool[170 * nonceSize];
    static size_t left = 0;
    if (left == 0) { check(getrandom(pool, sizeof pool, 0) == sizeof pool, "getrandom"); left = 170; }
    memcpy(nonce, pool + --left * nonceSize, nonceSize);
}

static void sealChunk(uint64_t index, uint8_t *data, int count, uint8_t *seal) {
    uint8_t key[32];
    int n;
    nextNonce(seal);
    chunkKey(seal, key);
    EVP_EncryptInit_ex2(gcmContext, NULL, key, seal + 12, NULL);
    EVP_EncryptUpdate(gcmContext, NULL, &n, (uint8_t *)&index, 8);
    EVP_EncryptUpdate(gcmContext, data, &n, data, count);
    EVP_EncryptFinal_ex(gcmContext, data, &n);
    EVP_CIPHER_CTX_ctrl(gcmContext, EVP_CTRL_AEAD_GET_TAG, tagSize, seal + nonceSize);
}

static void openChunk(uint64_t index, uint8_t *data, int count, uint8_t *seal) {
    uint8_t key[32];
    int n;
    chunkKey(seal, key);
    EVP_DecryptInit_ex2(gcmContext, NULL, key, seal + 12, NULL);
    EVP_DecryptUpdate(gcmContext, NULL, &n, (uint8_t *)&index, 8);
    EVP_DecryptUpdate(gcmContext, data, &n, data, count);
    EVP_CIPHER_CTX_ctrl(gcmContext, EVP_CTRL_AEAD_SET_TAG, tagSize, seal + nonceSize);
    check(EVP_DecryptFinal_ex(gcmContext, data, &n) == 1, "a chunk does not authenticate");
}

/* ---- the layouts ---- */
enum layout { row, block, sealBlocks, plain };
static enum layout layout;
static int chunkSize, fd;

static uint64_t group(uint64_t chunk) { return chunk < firstSeals ? 0 : 1 + (chunk - firstSeals) / groupSeals; }
static uint64_t groupFirst(uint64_t g) { return g == 0 ? 0 : firstSeals + (g - 1) * groupSeals; }
static uint64_t chunkAt(uint64_t chunk) {
    switch (layout) {
    case row: return blockSize + chunk * (blockSize + sealSize);
    case block: return blockSize + chunk * blockSize;
    case sealBlocks: return (chunk + group(chunk) + 1) * blockSize;
    default: return chunk * blockSize;
    }
}
static uint64_t sealAt(uint64_t chunk) {  /* of seal-blocks only: in the others it follows the chunk */
    uint64_t g = group(chunk), slot = chunk - groupFirst(g);
    return (groupFirst(g) + g) * blockSize + (g == 0 ? headerSize : 0) + slot * sealSize;
}
static void readAt(void *to, size_t count, uint64_t at) { check(pread(fd, to, count, (off_t)at) == (ssize_t)count, "pread"); }
static void writeAt(const void *from, size_t count, uint64_t at) { check(pwrite(fd, from, count, (off_t)at) == (ssize_t)count, "pwrite"); }

static void readChunk(uint64_t chunk, uint8_t *to) {  /* to holds a chunk and a seal */
    if (layout == plain) { readAt(to, blockSize, chunkAt(chunk)); return; }
    if (layout == sealBlocks) {
        readAt(to, blockSize, chunkAt(chunk));
        readAt(to + chunkSize, sealSize, sealAt(chunk));
    } else readAt(to, (size_t)chunkSize + sealSize, chunkAt(chunk));
    openChunk(chunk, to, chunkSize, to + chunkSize);
}
static void writeChunk(uint64_t chunk, uint8_t *from) {
    if (layout == plain) { writeAt(from, blockSize, chunkAt(chunk)); return; }
    sealChunk(chunk, from, chunkSize, from + chunkSize);
    if (layout == sealBlocks) {
        writeAt(from, blockSize, chunkAt(chunk));
        writeAt(from + chunkSize, sealSize, sealAt(chunk));
    } else writeAt(from, (size_t)chunkSize + sealSize, chunkAt(chunk));
}

/* Whole groups of 102 chunks in one call each, all layouts alike. */
static uint8_t big[(groupSeals + 1) * (blockSize + sealSize)];
static void sequential(int writing, uint64_t size, int padded) {
    uint64_t chunks = (size + (uint64_t)chunkSize - 1) / (uint64_t)chunkSize;
    for (uint64_t g = 0; g == 0 || groupFirst(g) < chunks; g++) {
        uint64_t first = groupFirst(g), end = groupFirst(g + 1) < chunks ? groupFirst(g + 1) : chunks;
        int leading = layout == sealBlocks || (g == 0 && layout != plain);  /* a header or a block of seals */
        uint64_t at = leading ? (layout == sealBlocks ? (first + g) * blockSize : 0) : chunkAt(first);
        size_t total = (leading ? blockSize : 0), stride = (size_t)chunkSize + (layout == row || layout == block ? sealSize : 0);
        total += (size_t)(end - first) * stride;
        if (!padded && end == chunks && chunks > 0) total -= (size_t)(chunks * (uint64_t)chunkSize - size);
        if (!writing) readAt(big, total, at);
        for (uint64_t chunk = first; chunk < end; chunk++) {
            uint8_t *data = big + (leading ? blockSize : 0) + (size_t)(chunk - first) * stride;
            int count = chunkSize;
            if (!padded && chunk + 1 == chunks) count -= (int)(chunks * (uint64_t)chunkSize - size);
            uint8_t *seal = layout == sealBlocks ? big + (g == 0 ? headerSize : 0) + (chunk - first) * sealSize : data + count;
            if (writing) memset(data, (int)chunk, (size_t)count);  /* stands for the caller's copy */
            if (layout == plain) continue;
            if (writing) sealChunk(chunk, data, count, seal); else openChunk(chunk, data, count, seal);
        }
        if (writing && total > 0) writeAt(big, total, at);
    }
}

static uint64_t randomState = 88172645463325252ull;  /* the same places for every layout */
static uint64_t randomNumber(void) {
    randomState ^= randomState << 13; randomState ^= randomState >> 7; randomState ^= randomState << 17;
    return randomState;
}

/* Overwrites or reads `count` bytes of plaintext; reads a chunk first where it is not wholly overwritten. */
static void reachInto(uint64_t offset, int count, int writing) {
    static uint8_t buffer[blockSize + sealSize];
    if (layout == plain) {
        if (writing) writeAt(buffer, (size_t)count, offset); else readAt(buffer, (size_t)count, offset);
        return;
    }
    while (count > 0) {
        uint64_t chunk = offset / (uint64_t)chunkSize;
        int inside = (int)(offset % (uint64_t)chunkSize), part = chunkSize - inside < count ? chunkSize - inside : count;
        if (!writing || part < chunkSize) readChunk(chunk, buffer);
        if (writing) { memset(buffer + inside, (int)offset, (size_t)part); writeChunk(chunk, buffer); }
        offset += (uint64_t)part; count -= part;
    }
}

static double seconds(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec; }
static double bytesRead(void) {  /* write_bytes is no use here: it counts whole large folios for each dirty page */
    char line[128];
    double bytes = 0;
    FILE *f = fopen("/proc/self/io", "r");
    check(f != NULL, "/proc/self/io");
    while (fgets(line, sizeof line, f)) sscanf(line, "read_bytes: %lf", &bytes);
    fclose(f);
    return bytes;
}
static void cold(void) { check(fsync(fd) == 0, "fsync"); posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL); }

static void choose(enum layout l) { layout = l; chunkSize = l == block ? blockSize - sealSize : blockSize; }

static void sizes(const char *directory) {
    static const uint64_t table[] = {0, 1, 100, 1000, 4000, 4096, 5000, 16384, 65536};
    static const char *names[] = {"row", "block", "seal-blocks", "plain"};
    char path[4096];
    for (unsigned s = 0; s < sizeof table / sizeof *table; s++) {
        printf("%llu", (unsigned long long)table[s]);
        for (int l = row; l <= plain; l++) for (int padded = 1; padded >= (l == plain ? 1 : 0); padded--) {
            struct stat status;
            choose((enum layout)l);
            snprintf(path, sizeof path, "%s/size-%s-%d", directory, names[l], padded);
            fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
            check(fd >= 0, path);
            sequential(1, table[s], l == plain ? 0 : padded);
            check(fsync(fd) == 0 && fstat(fd, &status) == 0, path);
            printf(" %lld", (long long)status.st_blocks * 512);
            close(fd); unlink(path);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: layout DIRECTORY WORK LAYOUT | layout DIRECTORY sizes\n"); return 64; }
    cipherSetUp();
    const char *work = argv[2];
    if (strcmp(work, "sizes") == 0) { sizes(argv[1]); return 0; }
    check(argc == 4, "usage");
    choose(!strcmp(argv[3], "row") ? row : !strcmp(argv[3], "block") ? block : !strcmp(argv[3], "seal-blocks") ? sealBlocks : plain);
    char path[4096];
    snprintf(path, sizeof path, "%s/container-%s", argv[1], argv[3]);
    int creating = strcmp(work, "write") == 0;
    if (creating) unlink(path);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    check(fd >= 0, path);

    int isCold = strstr(work, "cold") != NULL;
    if (isCold) cold();
    else if (!creating) { static uint8_t sink[1 << 20]; lseek(fd, 0, SEEK_SET); while (read(fd, sink, sizeof sink) > 0) {} }
    double before = bytesRead();
    double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t pages = plainSize / blockSize - 1;
    if (creating) sequential(1, plainSize, 1);
    else if (!strncmp(work, "read", 4)) sequential(0, plainSize, 1);
    else if (!strncmp(work, "random-read", 11)) for (int i = 0; i < 20000; i++) reachInto(randomNumber() % pages * blockSize, blockSize, 0);
    else if (!strncmp(work, "overwrite-4096", 14)) for (int i = 0; i < 20000; i++) reachInto(randomNumber() % pages * blockSize, blockSize, 1);
    else if (!strncmp(work, "overwrite-100", 13)) for (int i = 0; i < 20000; i++) reachInto(randomNumber() % (plainSize - blockSize), 100, 1);
    else if (!strncmp(work, "database", 8)) for (int i = 0; i < 2000; i++) {
        reachInto(randomNumber() % pages * blockSize, blockSize, 1);
        if (i % 8 == 7) check(fdatasync(fd) == 0, "fdatasync");
    }
    else { fprintf(stderr, "layout: unknown work %s\n", work); return 64; }
    if (creating || strstr(work, "overwrite")) check(fsync(fd) == 0, "fsync");
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double wall = seconds(CLOCK_MONOTONIC) - start;
    printf("%.6f %.6f %.1f\n", wall, cpu, (bytesRead() - before) / 1048576);
    return 0;
}
