/* What N workers do against one (run --workers): for each entry that has both rows the ratio of
 * their rates, block by block, and how much of the cores it makes of. Workers are never ranked:
 * neither against rows of one worker, nor among each other.
 */
#ifndef REPORT_WORKERS_H
#define REPORT_WORKERS_H

#include "stats/paired.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct summary;

struct workers_pair {
    const char *entry; /* its row of one worker */
    const char *row;   /* and of several */
    unsigned workers;
    unsigned cores;             /* that they could use; one worker has one */
    const char *reason;         /* why there is no ratio; "": there is */
    struct interval ratio;      /* several over one, 95%; NAN: not known */
    struct interval efficiency; /* ratio over the smaller of workers and cores */
    bool hammer_limited; /* the load generator was the limit of either: the ratio tells nothing */
};

struct scaling {
    unsigned workers;           /* asked for; 1: the run had none, and all else is empty */
    struct workers_pair *pairs; /* by the rate of several, as their rows are */
    size_t count;
};

/* Fills summary->scaling, whose pairs are to be freed. `plan` is run.json's. */
void workers_make(struct summary *summary, const json_t *plan, const struct paired *paired,
                  uint64_t seed);

/* A line for each pair, such as "libev: 2 workers on 1 core: 0.980 (0.960 to 1.010) of one,
 * efficiency 98% (96% to 101%)", and one that names the entries that take no workers. Nothing of a
 * run without. */
void workers_print(FILE *out, const struct summary *summary);

/* A new array, an object for each pair: entry, row, workers, cores, and of these what is known:
 * ratio, efficiency, with _low and _high, reason, hammer_limited. */
json_t *workers_to_json(const struct scaling *scaling);

#endif
