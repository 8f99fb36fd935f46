// Starting a program with nothing of this process but what it is given.
#ifndef CANDADO_PROGRAM_SHIMS_H
#define CANDADO_PROGRAM_SHIMS_H

#include <stddef.h>
#include <sys/types.h>

struct candado_descriptor_move {
    int source;
    int target;
};
// Starts a program in a new session, with no signal blocked or handled and no descriptors but the targets.
// 0, or an errno.
int candado_start_program(const char *path, char *const *arguments, const struct candado_descriptor_move *moves,
                          size_t move_count, pid_t *process);

#endif
