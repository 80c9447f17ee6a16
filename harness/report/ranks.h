/* Who is faster than whom, and how far the record can be trusted to say so: every pair of ranked
 * entries tested, Holm's correction over all pairs, ranks with ties, and the twin.
 *
 * A outranks B if Holm's adjusted p is below 0.05, the ratio A/B is above 1 + delta, and B's
 * verdicts hold no "hammer": what held B back was the load generator, so nobody was shown to be
 * faster. delta is the larger of 1% and what the twin showed. What follows from two claims is
 * claimed as well (stats/order.h).
 *
 * With fewer boots than the first step of Holm's correction needs for any claim at all, ranks are
 * by rate, and provisional.
 */
#ifndef REPORT_RANKS_H
#define REPORT_RANKS_H

#include "stats/paired.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct summary;

/* The level of all claims: Holm's adjusted p, and p of the twin, below this. */
#define RANKS_ALPHA 0.05

/* Entries nearer to each other than this are not ranked apart, however sure their difference. */
#define RANKS_DELTA_MIN 0.01

struct ranks_pair {
    const char *upper, *lower; /* names of rows; upper/lower is the ratio, 1 or more */
    struct interval ratio;     /* 95%; a pair that shares no block is in no list */
    double p, p_adjusted;
    bool outranks;  /* upper outranks lower */
    unsigned boots; /* in which the two can be compared */
};

/* The A/A comparison: one entry measured a second time as if it were another. */
struct twin {
    const char *entry;     /* its entry's name; NULL: the record has no twin */
    const char *reason;    /* why there is no A/A; "": there is */
    struct interval ratio; /* twin/entry, 95% */
    double p;              /* of the sign-flip test, one test, not corrected */
    bool differs;          /* p < 0.05 and the ratio is over 1% from 1 */
    bool failed;           /* the twin's server went wrong */
    unsigned boots;
};

struct ranking {
    struct ranks_pair *pairs; /* in the order of the rows */
    size_t pair_count;
    double delta; /* 0.01: a ratio above 1.01 counts */
    struct twin twin;
    bool provisional;
    unsigned boots_needed; /* for a claim, over so many pairs; 0: no pair */
    unsigned boots;        /* of the pair that can be compared in most */
};

/* Takes the twin's row out of the summary's rows, gives ranks to the ranked rows and sorts them:
 * by rank, then by rate. The rows are sorted by class and rate already. With `rank` false, as on
 * one CPU, nothing is ranked. */
void ranks_make(struct summary *summary, const struct paired *paired, uint64_t seed, bool rank);
void ranks_free(struct ranking *ranking);

/* "INCONCLUSIVE" is the twin's differing. */
bool ranks_inconclusive(const struct ranking *ranking);

#endif
