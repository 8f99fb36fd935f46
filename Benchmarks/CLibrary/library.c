/* The C library's rows of Benchmarks/run: the same work as candado-benchmark's agent-read and agent-length. */
#include <candado.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] = "usage: library HOME VERB PATH COUNT\n"
                            "  read PATH COUNT     read 4 KiB blocks at random places\n"
                            "  length PATH COUNT   ask for the length of an open file\n"
                            "  empty PATH COUNT    read no bytes: what a call costs that has nothing to do\n";

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int fail(const char *what)
{
    char text[1024];
    candado_error(text, sizeof text);
    fprintf(stderr, "library: %s: %s\n", what, text);
    return 1;
}

int main(int count, char **words)
{
    static char block[4096];
    uint64_t place = 88172645463325252u;
    if (count != 5 || candado_use_home(words[1])) return fputs(usage, stderr), 64;
    candado_file file = candado_open(words[3], CANDADO_READ, CANDADO_CLASS_DEFAULT);
    if (file < 0) return fail("open");
    int64_t length = candado_length(file);
    long rounds = atol(words[4]);
    double start = now();
    if (!strcmp(words[2], "read")) {
        uint64_t blocks = (uint64_t)length / sizeof block;
        for (long round = 0; round < rounds; round++) {
            place ^= place << 13;
            place ^= place >> 7;
            place ^= place << 17;
            int64_t offset = (int64_t)(place % blocks * sizeof block);
            if (candado_pread(file, block, sizeof block, offset) != (ssize_t)sizeof block) return fail("pread");
        }
    } else if (!strcmp(words[2], "length")) {
        for (long round = 0; round < rounds; round++)
            if (candado_length(file) != length) return fail("length");
    } else if (!strcmp(words[2], "empty")) {
        for (long round = 0; round < rounds; round++)
            if (candado_pread(file, block, 0, 0)) return fail("pread");
    } else {
        return fputs(usage, stderr), 64;
    }
    printf("%.9f\n", now() - start);
    return candado_close(file) ? fail("close") : 0;
}
