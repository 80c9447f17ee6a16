/* What one request costs, counted and not timed: instructions in user mode and allocations by
 * callgrind, system calls by tracing. A server is started, asked a first number of requests over a
 * fixed number of connections, and ended; then again with so many more. Both runs start, connect,
 * warm up and end alike, so their difference is that of the requests alone. With one connection and
 * one request at a time server and client take turns, and each request is the same path again; with
 * more, how many are found ready in one turn is up to the scheduler, and the figures vary.
 */
#ifndef TRIAL_EXACT_H
#define TRIAL_EXACT_H

#include "base/err.h"
#include "entry/entry.h"
#include "host/callgrind.h"
#include "host/calls.h"

#include <signal.h>
#include <stdbool.h>

struct exact_shape {
    unsigned connections;
    unsigned pipeline;
    unsigned requests;        /* the difference of the two runs */
    bool instructions, calls; /* which to count */
};

struct exact_cost {
    bool instructions_known, calls_known;
    char instructions_why[1100]; /* absent, and not asked away: why */
    char calls_why[1100];
    struct callgrind profile; /* of exact_shape.requests; sorted */
    double instructions;      /* these are per request */
    double allocations;
    double calls;
    double calls_by_number[CALLS_MAX];
};

/* Counts. An entry with a JIT has no instructions, and calls_why or instructions_why say what else
 * can't be had. -ECHILD, -EPROTO … when the entry itself fails: it does not start, or answers
 * wrongly; -EINTR once *stop is set. `cost` is the caller's to free in any case (exact_free). */
int exact_measure(const struct entry *entry, const struct exact_shape *shape,
                  const volatile sig_atomic_t *stop, struct exact_cost *cost, struct err *err);
void exact_free(struct exact_cost *cost);

/* "valgrind-3.19.0", or NULL where it can't be run; free(). */
char *exact_valgrind_version(void);

#endif
