#define _GNU_SOURCE
#include "include/program_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

extern char **environ;

struct start {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
};

static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &all);
    return error;
}

static int is_target(int number, const struct candado_descriptor_move *moves, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (moves[i].target == number) return 1;
    }
    return 0;
}

int candado_start_program(const char *path, char *const *arguments, const struct candado_descriptor_move *moves,
                          size_t move_count, pid_t *process) {
    int highest = -1;
    for (size_t i = 0; i < move_count; i++) {
        if (moves[i].target < 0 || moves[i].target > 1023 || is_target(moves[i].target, moves, i)) return EINVAL;
        if (moves[i].target > highest) highest = moves[i].target;
    }
    int *copies = malloc(sizeof(int) * (move_count + 1));
    if (copies == NULL) return ENOMEM;
    int error = 0;
    // Copies above all targets, so that no source is overwritten before it is used.
    size_t copied = 0;
    for (; copied < move_count; copied++) {
        copies[copied] = fcntl(moves[copied].source, F_DUPFD_CLOEXEC, highest + 1);
        if (copies[copied] == -1) {
            error = errno;
            break;
        }
    }
    struct start start;
    if (error == 0) error = posix_spawnattr_init(&start.attributes);
    if (error == 0) {
        error = set_attributes(&start.attributes);
        int has_actions = 0;
        if (error == 0) {
            error = posix_spawn_file_actions_init(&start.actions);
            has_actions = error == 0;
        }
        for (size_t i = 0; error == 0 && i < move_count; i++) {
            error = posix_spawn_file_actions_adddup2(&start.actions, copies[i], moves[i].target);
        }
        for (int number = 0; error == 0 && number < highest; number++) {
            if (is_target(number, moves, move_count)) continue;
            error = posix_spawn_file_actions_addclose(&start.actions, number);
        }
        if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&start.actions, highest + 1);
        if (error == 0) error = posix_spawn(process, path, &start.actions, &start.attributes, arguments, environ);
        if (has_actions) posix_spawn_file_actions_destroy(&start.actions);
        posix_spawnattr_destroy(&start.attributes);
    }
    for (size_t i = 0; i < copied; i++) close(copies[i]);
    free(copies);
    return error;
}
