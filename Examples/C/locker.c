/* Protected files from C: write one, read it, ask for its class, and hear when the user locks and unlocks. */
#include <candado.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: locker write CLASS PATH    the file's new content comes on stdin\n"
                            "       locker read PATH...        through a handle, 4 KiB at a time\n"
                            "       locker class PATH...       needs no key\n"
                            "       locker watch [COUNT]       lock events, for ever or so many\n";

/* What was printed may still lie in a buffer, and fail to be written. */
static int printed(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return 0;
    }
    perror("locker: stdout");
    return 1;
}

/* Says why the last call failed. */
static int failed(void) {
    char sentence[1024];
    candado_error(sentence, sizeof sentence);
    fprintf(stderr, "locker: %s\n", sentence);
    return 1;
}

static int write_file(const char *class_name, const char *path) {
    int protection_class = candado_class_named(class_name);
    if (protection_class < 0) {
        return failed();
    }
    static char content[(1 << 16) + 1]; /* one byte more than is taken, to tell that there are more */
    size_t size = fread(content, 1, sizeof content, stdin);
    if (ferror(stdin)) {
        perror("locker: stdin");
        return 1;
    }
    if (size == sizeof content) {
        fprintf(stderr, "locker: more than %zu bytes\n", sizeof content - 1);
        return 1;
    }
    /* All of it or nothing: a power cut leaves the file as it was or as it is to be. */
    return candado_write_file(path, content, size, protection_class, 0) == 0 ? 0 : failed();
}

static int read_file(const char *path) {
    candado_file file = candado_open(path, CANDADO_READ, CANDADO_CLASS_DEFAULT);
    if (file < 0) {
        return failed();
    }
    char block[4096];
    ssize_t count;
    int64_t offset = 0;
    while ((count = candado_pread(file, block, sizeof block, offset)) > 0) {
        fwrite(block, 1, (size_t)count, stdout);
        offset += count;
    }
    /* A class A file that was open at the lock ends here, with ENOKEY. */
    int status = count < 0 ? failed() : 0;
    candado_close(file);
    return status;
}

static int show_class(const char *path) {
    int protection_class = candado_class_of_path(path, 0);
    if (protection_class < 0) {
        return failed();
    }
    printf("%s: %s\n", path, protection_class == 0 ? "no class" : candado_class_name(protection_class));
    return 0;
}

static const char *word(const struct candado_event *event) {
    switch (event->kind) {
        case CANDADO_EVENT_STATE: return "state";
        case CANDADO_EVENT_WILL_LOCK: return "will lock";
        case CANDADO_EVENT_DID_LOCK: return "locked";
        case CANDADO_EVENT_DID_UNLOCK: return "unlocked";
        case CANDADO_EVENT_LOST: return "events were lost";
        default: return NULL; /* of a later version */
    }
}

static int watch(long count) {
    candado_events events = candado_events_open();
    if (events < 0) {
        return failed();
    }
    struct pollfd waiting = {candado_events_descriptor(events), POLLIN, 0};
    while (count != 0) {
        struct candado_event event;
        int taken = candado_events_next(events, &event);
        if (taken < 0) {
            return failed();
        }
        if (taken == 0) {
            poll(&waiting, 1, -1); /* beside whatever else the program waits for */
            continue;
        }
        const char *text = word(&event);
        if (text != NULL) {
            static const char *const states[] = {"before the first unlock", "unlocked", "locked"};
            printf("%s: now %s\n", text, event.state >= 0 && event.state <= 2 ? states[event.state] : "?");
            if (printed() != 0) {
                candado_events_close(events);
                return 1;
            }
            count -= count > 0;
        }
    }
    return candado_events_close(events) == 0 ? 0 : failed();
}

int main(int count, char **words) {
    int status = 0;
    if (count == 4 && strcmp(words[1], "write") == 0) {
        return write_file(words[2], words[3]);
    }
    if (count >= 3 && strcmp(words[1], "read") == 0) {
        for (int index = 2; index < count; index++) {
            status |= read_file(words[index]);
        }
        return status | printed();
    }
    if (count >= 3 && strcmp(words[1], "class") == 0) {
        for (int index = 2; index < count; index++) {
            status |= show_class(words[index]);
        }
        return status | printed();
    }
    if ((count == 2 || count == 3) && strcmp(words[1], "watch") == 0) {
        return watch(count == 3 ? strtol(words[2], NULL, 10) : -1);
    }
    fputs(usage, stderr);
    return 64;
}
