/* What callgrind wrote: instructions by function. callgrind (valgrind.org) runs a program on a
 * processor of its own making and counts each instruction in user mode, so that its figures do not
 * depend on what else the machine does. Format: "Callgrind Format Specification" of the Valgrind
 * manual, as version 3.19 writes it with names compressed and one position (--dump-line).
 */
#ifndef HOST_CALLGRIND_H
#define HOST_CALLGRIND_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct callgrind_function {
    char *object; /* path of the program or library; "???" where unknown */
    char *name;
    int64_t instructions; /* in it alone, without what it called */
};

struct callgrind {
    int64_t instructions; /* of all */
    int64_t allocations;  /* calls of malloc, calloc, realloc and the aligned ones */
    struct callgrind_function *functions;
    size_t count;
};

/* Adds what the file holds to *profile, which starts as {0}; several files are several processes.
 * -EINVAL, naming the line, for one that breaks the format, and for one whose functions do not add
 * up to its total. */
int callgrind_add(struct callgrind *profile, const char *path, struct err *err);

/* Takes `less` away, function by function: what is left of a long run is what it did more. */
void callgrind_subtract(struct callgrind *profile, const struct callgrind *less);

/* Most instructions first, then by name. */
void callgrind_sort(struct callgrind *profile);

void callgrind_free(struct callgrind *profile);

#endif
