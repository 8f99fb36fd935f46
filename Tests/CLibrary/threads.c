/* Threads, forks and handles, as a program in C has them. Prints nothing but what is wrong; ends with 0 when nothing is.
 *
 * usage: threads DIRECTORY     with an agent that is unlocked */
#include <candado.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int wrong = 0;

static void expect(int holds, const char *what) {
    if (!holds) {
        char sentence[1024];
        candado_error(sentence, sizeof sentence);
        fprintf(stderr, "threads: %s (errno %d: %s)\n", what, errno, sentence);
        __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
    }
}

static char path[4096];
static candado_file shared;
static candado_events events;
static int stop = 0;

/* Everything that a child is refused; 0, or the number of the first that is not. */
static int refusals(void) {
    char byte = 0;
    void *bytes;
    size_t size;
    struct candado_event event;
#define REFUSED(call) \
    errno = 0; \
    if ((call) != -1 || errno != ESTALE) { \
        fprintf(stderr, "threads: not refused in a child: %s, errno %d\n", #call, errno); \
        return 1; \
    }
    REFUSED(candado_pread(shared, &byte, 1, 0))
    REFUSED(candado_pwrite(shared, &byte, 1, 0))
    REFUSED(candado_append(shared, &byte, 1))
    REFUSED(candado_length(shared))
    REFUSED(candado_truncate(shared, 0))
    REFUSED(candado_fsync(shared))
    REFUSED(candado_class_of_file(shared))
    REFUSED(candado_close(shared))
    REFUSED(candado_open(path, CANDADO_READ, 0))
    REFUSED(candado_read_file(path, &bytes, &size))
    REFUSED(candado_read_file_into(path, &byte, 1))
    REFUSED(candado_write_file(path, &byte, 1, 0, 0))
    REFUSED(candado_set_class(path, 4, 0))
    REFUSED(candado_use_home(NULL))
    REFUSED(candado_connect_agent())
    REFUSED(candado_lock_state())
    REFUSED(candado_can_read(4))
    REFUSED(candado_events_open())
    REFUSED(candado_events_descriptor(events))
    REFUSED(candado_events_next(events, &event))
    REFUSED(candado_events_close(events))
    unsigned char record[CANDADO_RECORD_SIZE];
    struct candado_record parts;
    if (candado_class_of_path(path, 0) != CANDADO_CLASS_COMPLETE ||
        candado_record_of_path(path, 0, record, sizeof record) != 60 || candado_record_parse(record, 60, &parts) != 0 ||
        candado_record_encode(&parts, record, sizeof record) != 60 || candado_class_named("none") != 4) {
        fprintf(stderr, "threads: what needs no key fails in a child, errno %d\n", errno);
        return 1;
    }
    return 0;
}

static void *read_on(void *argument) {
    char block[4096];
    (void)argument;
    while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
        candado_file own = candado_open(path, CANDADO_READ, 0);
        expect(own > 0, "open");
        expect(candado_pread(own, block, sizeof block, 4096) == 4096, "read");
        expect(candado_pread(shared, block, sizeof block, 0) == 4096, "read through the shared handle");
        expect(candado_close(own) == 0, "close");
        expect(candado_class_of_path("/nowhere", 0) == -1 && errno == ENOENT, "a file that is not there");
        expect(candado_close(own) == -1 && errno == EBADF, "a closed handle");
    }
    return NULL;
}

static void forks(int count) {
    for (int index = 0; index < count; index++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(refusals());
        }
        int status = -1;
        while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
        }
        expect(status == 0, "a forked child hung, ended by a signal or was not refused");
    }
}

/* Forks first, and uses the library only then, in the child, with threads. */
static int in_a_child_that_comes_first(void);

static int run(void) {
    static char content[100000];
    memset(content, 'x', sizeof content);
    expect(candado_write_file(path, content, sizeof content, CANDADO_CLASS_COMPLETE, 0) == 0, "write");
    shared = candado_open(path, CANDADO_UPDATE, 0);
    events = candado_events_open();
    expect(shared > 0 && events > 0, "open");
    pthread_t threads[8];
    for (int index = 0; index < 8; index++) {
        expect(pthread_create(&threads[index], NULL, read_on, NULL) == 0, "a thread");
    }
    forks(40);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (int index = 0; index < 8; index++) {
        pthread_join(threads[index], NULL);
    }
    expect(candado_length(shared) == sizeof content, "the parent goes on");
    expect(candado_close(shared) == 0 && candado_events_close(events) == 0, "close");
    return wrong;
}

static int in_a_child_that_comes_first(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(run());
    }
    int status = -1;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
    return status;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "--after-exec") == 0) {
        /* All is new: the number was a handle of another process. */
        return candado_length(strtoll(words[2], NULL, 10)) == -1 && errno == EBADF && candado_lock_state() == CANDADO_UNLOCKED
                   ? 0
                   : 1;
    }
    if (count != 2) {
        fprintf(stderr, "usage: threads DIRECTORY\n");
        return 64;
    }
    snprintf(path, sizeof path, "%s/threads", words[1]);
    /* What needs no key is no use in this sense. */
    expect(candado_class_of_path("/nowhere", 0) == -1, "a file that is not there");
    expect(in_a_child_that_comes_first() == 0, "the library in a child that was forked in time");
    run();
    candado_file file = candado_open(path, CANDADO_READ, 0);
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)file);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "threads", "--after-exec", number, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
    }
    expect(status == 0, "a child that called exec");
    return wrong;
}
