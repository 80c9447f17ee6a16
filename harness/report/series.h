/* The rates of a record, block by block, for a choice of its entries: what comparisons are made of.
 */
#ifndef REPORT_SERIES_H
#define REPORT_SERIES_H

#include "record/record.h"
#include "stats/paired.h"

#include <stdbool.h>
#include <stdint.h>

/* A server waited in a slice if it went to sleep over 1,000 times a second: a server of one thread
 * that finds its next requests there already hardly sleeps, and one that the load generator can't
 * keep busy slept over 2,000 times. Where the hypervisor took the cores it was about 400, both ways
 * alike. Servers of several threads sleep for their own reasons and are never said to wait. */
#define SERIES_WAITS_PER_S 1000

struct series {
    size_t entries, blocks, boots;
    double *rate;       /* [block * entries + entry], per second; NAN where there is none */
    bool *waited;       /* [block * entries + entry]: see below */
    unsigned *boot;     /* of each block, counted from 0 without gaps */
    uint64_t *begin_ns; /* of each boot: its first slice's beginning, CLOCK_MONOTONIC */
    uint64_t *end_ns;   /* of each boot: its last slice's beginning */
};

/* The columns are those of `names`, in their order. Slices of others are passed over, and so are
 * the boots in which none of them has a slice. */
void series_read(const struct record_data *data, const char *const *names, size_t count,
                 struct series *series);
void series_free(struct series *series);

/* Borrows the series' arrays. */
struct paired series_paired(const struct series *series);

#endif
