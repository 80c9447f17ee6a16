/* What a request costs beside time: system calls, instructions, cycles, context switches. They are
 * counted in windows of their own, once a boot (lines of type "cost"); context switches also in the
 * measured slices, which count where the windows did not. What could not be counted is absent from
 * the lines, and NAN here.
 */
#ifndef REPORT_COSTS_H
#define REPORT_COSTS_H

#include <jansson.h>

enum cost {
    COST_SYSCALLS,
    COST_INSTRUCTIONS_USER,
    COST_INSTRUCTIONS_KERNEL,
    COST_CYCLES_USER,
    COST_CYCLES_KERNEL,
    COST_SWITCHES_VOLUNTARY,
    COST_SWITCHES_INVOLUNTARY,
    COST_KINDS
};

/* Sums over the lines that hold a kind; all zero to begin with. */
struct costs {
    double count[COST_KINDS];
    double valid[COST_KINDS]; /* answers in those lines */
};

/* Adds a line of type "cost" or "slice": each kind it holds, and its "valid". */
void costs_add(struct costs *costs, const json_t *line);

/* Per request; NAN if no line held the kind or none had a valid answer. */
double costs_per_request(const struct costs *costs, enum cost kind);

/* "syscalls", the key in a line; "_per_req" behind it makes the key of a report. */
const char *costs_key(enum cost kind);

#endif
